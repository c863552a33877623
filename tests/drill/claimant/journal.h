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

// A claimant's records, one per line, which a test and the oracle can read even after the process
// was killed. Values, each with one text form; thread-compatible.

// A run of issued ids, written before the ids are used.
struct IssuedRun {
  BootMs at;
  IdRun run;
};

// The status of the claim, written when it has changed.
struct StatusLine {
  BootMs at;
  std::string state;  // ClaimStateName
  std::optional<MachineId> machine;
  WallMs bound;
  bool connected = false;
  int64_t session = 0;
  std::string answer;  // to the last call for ids: "issued", or the refusal's reason and message
  std::string reason;  // ClaimStatus::reason
};

// "<boot ms> <first> <count> <stride>\n"
std::string FormatRun(const IssuedRun& run);
Result<IssuedRun> ParseRun(std::string_view line);

// Fields separated by tabs.
std::string FormatStatus(const StatusLine& status);
Result<StatusLine> ParseStatus(std::string_view line);

// Reads the complete lines of a growing file. Leaves an incomplete last line, as of a process that
// was killed while writing, for a later read.
class LineReader {
 public:
  explicit LineReader(std::string path) : path_(std::move(path)) {}

  // Returns the lines added since the last call, without their ends; none if there is no file.
  std::vector<std::string> Next();

 private:
  const std::string path_;
  size_t read_ = 0;
};

}  // namespace firn
