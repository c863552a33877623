#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "tools/firn/output.h"

namespace firn {

// One verb of the firn command, or a group of verbs. A tree of them is the whole command; main
// builds it, so reading main tells what the command can do.
struct Verb {
  using Run = std::function<Result<Output>(const std::vector<std::string>& arguments)>;

  std::string_view name;
  std::string_view arguments{};           // as the help shows them: "ID..."
  std::string_view summary{};             // one line, no full stop
  std::string_view details{};             // further lines of the help
  std::vector<std::string_view> flags{};  // gflags that it takes, beside --json and --help
  Run run{};                              // of a verb
  std::vector<Verb> below{};              // of a group
};

// Exit codes, for scripts. A failure's code follows its remedy.
enum class Exit {
  kDone = 0,
  kWrong = 1,    // done, and what was looked at is not as it should be
  kUsage = 2,    // invalid usage
  kLater = 3,    // the registry or server cannot be reached; try later
  kRefused = 4,  // not there, not permitted, or somebody was first
  kUnknown = 5,  // outcome unknown; check before you repeat it
  kBroken = 6,   // data that cannot be trusted, or a defect
};
Exit ExitFor(Code code);

// With --version prints `version` and nothing else. Finds the verb that the words of `argv` name,
// sets its flags (--name=value, --name value, --[no]name; a bare -- ends them), runs it and prints
// what it says, or its help. Every mistake of the call is told in one sentence on stderr. Returns
// the exit code.
int RunCommand(const Verb& root, std::string_view version, int argc, const char* const* argv);

}  // namespace firn
