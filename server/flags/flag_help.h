#pragma once

#include <string>
#include <vector>

namespace firn {

// The flags of firn-server for who asks --help: in groups, what is wanted most comes first. Those
// of the libraries stand behind --helpfull.
struct FlagGroup {
  const char* title;
  std::vector<std::string> flags;
};
const std::vector<FlagGroup>& FlagGroups();

// The page itself. Dies when a group names a flag that there is not.
std::string FlagHelp();

// Whether the command line asks for that page and for nothing else of the kind.
bool AsksForHelp(int argc, const char* const* argv);

}  // namespace firn
