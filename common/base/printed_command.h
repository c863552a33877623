#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// A command that a program prints for a person to run.
enum class PrintedCommand {
  kRestore,
  kRestoreWorkers,
  kRestoreIdsSince,
  kInit,
  kTags,
  kTagsSet,
  kSet,
  kServers,
  kExplainTag,
};

// Every command that Firn's programs print in errors, log lines, audits and on pages.
// tools/checks/commands.py refuses a source that composes one otherwise, and a row that no test
// pastes into a shell (tests/support/paste.h). A command works as pasted, unless the program
// refuses it and says what to replace.
struct CommandTemplate {
  PrintedCommand which;
  std::string_view words;  // its beginning; after a '=', the first argument completes the last word
};
inline constexpr std::array kPrintedCommands{
    // With all facts about a lost cluster (RestoreCommand), or none if the registry has them.
    CommandTemplate{PrintedCommand::kRestore, "firn restore"},
    CommandTemplate{PrintedCommand::kRestoreWorkers, "firn restore --set=workers="},
    CommandTemplate{PrintedCommand::kRestoreIdsSince, "firn restore --ids_since=DATE"},
    CommandTemplate{PrintedCommand::kInit, "firn init"},
    CommandTemplate{PrintedCommand::kTags, "firn tags"},
    CommandTemplate{PrintedCommand::kTagsSet, "firn tags set"},
    CommandTemplate{PrintedCommand::kSet, "firn set"},
    CommandTemplate{PrintedCommand::kServers, "firn servers"},
    CommandTemplate{PrintedCommand::kExplainTag, "firn explain ID --tag=TAG"},
};

// Returns the command with these arguments, each quoted for a shell where that is necessary.
std::string PrintCommand(PrintedCommand which, const std::vector<std::string>& arguments = {});

// Returns the message with "; run firn restore" at its end: the cluster's data must be restored. A
// server adds the whole command wherever AsksForRestore finds these words.
std::string AskForRestore(std::string_view message);
bool AsksForRestore(std::string_view message);

}  // namespace firn
