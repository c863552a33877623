#pragma once

#include <map>
#include <string>

#include "common/base/status.h"

namespace firn {

// Retired flags that were set, each with a warning. Flags of the previous version only.
using RetiredFlags = std::map<std::string, std::string>;

// Sets the flags of a command line, and of the flag files that it names, directly or through other
// flag files. Replaces gflags' own parser, which ends the program at the first fault and ignores
// unknown flags in a file: with a mistyped --registry, several servers would each create a cluster.
//
// On the command line, a flag is --name=value or --name value; a switch may have no value. A line
// of a file is a flag, a comment (#) or empty. kInvalid names every fault, with its file and line.
// A retired flag is not a fault: it is ignored, or read under its new name.
Status ReadCommandLine(int argc, const char* const* argv, RetiredFlags& retired);

}  // namespace firn
