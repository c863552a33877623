#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "server/issue/runs.h"

namespace firn {

// What a claimant writes down, a line each, so that a test and the oracle can read it whatever
// becomes of the process. Values with one text form; thread-compatible.

// Ids that were got, written before they count as used.
struct IssuedRun {
  BootMs at;
  IdRun run;
};

// How the claim stands, written when it has changed.
struct StatusLine {
  BootMs at;
  std::string state;  // ClaimStateName
  std::optional<MachineId> machine;
  WallMs bound;
  bool connected = false;
  int64_t session = 0;
  std::string answer;  // of the last call for ids: "issued", or the refusal's reason and message
  std::string reason;  // ClaimStatus::reason
};

// "<boot ms> <first> <count> <stride>\n"
std::string FormatRun(const IssuedRun& run);
Result<IssuedRun> ParseRun(std::string_view line);

// Members separated by tabs.
std::string FormatStatus(const StatusLine& status);
Result<StatusLine> ParseStatus(std::string_view line);

// The whole lines of a file that grows. A torn last line, of a process killed in between, is left
// for later.
class LineReader {
 public:
  explicit LineReader(std::string path) : path_(std::move(path)) {}

  // The lines that were added since the last call, without their ends; none while there is no file.
  std::vector<std::string> Next();

 private:
  const std::string path_;
  size_t read_ = 0;
};

}  // namespace firn
