#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/text/posix_tz.h"
#include "common/text/time_zone.h"

namespace firn {

// A compiled zone file (RFC 8536): a table of the times at which the offset changed, and a rule for
// the time after the last change. Immutable. Every count and index in the file is checked before
// it is used; files with leap seconds are refused, because Firn's calendar has none.
class Tzif final : public TimeZone::Rules {
 public:
  // kCorrupt if `bytes` are not a valid zone file.
  static Result<std::shared_ptr<const Tzif>> Parse(std::string_view bytes);

  const TimeZone::LocalType& At(std::chrono::sys_seconds t) const override;

 private:
  friend class TzifParser;

  std::vector<TimeZone::LocalType> types_;         // at least one
  std::vector<std::chrono::sys_seconds> changes_;  // ascending
  std::vector<uint8_t> type_after_;                // for each change, an index into types_
  std::optional<PosixTz> rule_;                    // after the last change
};

}  // namespace firn
