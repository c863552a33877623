#pragma once

#include <string>
#include <vector>

namespace firn {

// A titled group of firn-server's flags, as --help prints them: the most used first. --helpfull
// prints the libraries' flags as well.
struct FlagGroup {
  const char* title;
  std::vector<std::string> flags;
};
const std::vector<FlagGroup>& FlagGroups();

// Returns the text of --help. Ends the process if a group names a flag that does not exist.
std::string FlagHelp();

// Returns whether the command line asks for --help.
bool AsksForHelp(int argc, const char* const* argv);

}  // namespace firn
