#pragma once

#include <map>
#include <string>

#include "common/base/printed_command.h"
#include "tests/support/process.h"

namespace firn {

// Returns the last command of this row of kPrintedCommands in a printed text, such as a log; empty
// if there is none.
std::string CommandIn(PrintedCommand which, const std::string& text);

// Runs a printed command, unchanged, in a shell in which `firn` is the program of this build. Fails
// the test if the command is not of this row. tools/checks/commands.py requires a call of this
// function for each row.
Finished Paste(PrintedCommand which, const std::string& command,
               const std::map<std::string, std::string>& environment = {});

}  // namespace firn
