#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "tools/firn/output.h"

namespace firn {

// A verb of the firn command, or a group of verbs. The command is a tree of verbs, which main.cc
// builds.
struct Verb {
  using Run = std::function<Result<Output>(const std::vector<std::string>& arguments)>;

  std::string_view name;
  std::string_view arguments{};           // as shown in the help: "ID..."
  std::string_view summary{};             // one line, no full stop
  std::string_view details{};             // further lines of the help
  std::vector<std::string_view> flags{};  // accepted gflags, besides --json and --help
  Run run{};                              // set for a verb
  std::vector<Verb> below{};              // set for a group
};

// Exit codes, for scripts. Failures with the same remedy have the same code.
enum class Exit {
  kDone = 0,
  kWrong = 1,    // done, and the verb found something wrong
  kUsage = 2,    // invalid usage
  kLater = 3,    // the registry or server cannot be reached; try later
  kRefused = 4,  // missing, not permitted, or changed concurrently
  kUnknown = 5,  // outcome unknown; check before you repeat it
  kBroken = 6,   // data not trustworthy, or a defect
};
Exit ExitFor(Code code);

// Runs a command line and returns the exit code. Finds the verb that the words of `argv` name, sets
// its flags (--name=value, --name value, --[no]name; a bare -- ends them), runs it and prints its
// output or its help. An invalid command line prints one sentence on stderr. With --version, prints
// `version` and runs nothing.
int RunCommand(const Verb& root, std::string_view version, int argc, const char* const* argv);

}  // namespace firn
