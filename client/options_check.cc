#include "client/options_check.h"

#include <cstdint>
#include <string>

#include "common/base/faults.h"

namespace firn::client {
namespace {

constexpr int64_t kHourMs = kDeadlineMax.count();

void CheckRange(const char* field, int64_t value, int64_t least, int64_t most, Faults& faults) {
  if (value >= least && value <= most) return;
  faults.Add(std::string(field) + " is " + std::to_string(value) + ", it may be " +
             std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace

Status CheckOptions(const ClientOptions& options) {
  Faults faults;
  CheckRange("deadline (ms)", options.deadline.count(), 1, kHourMs, faults);
  CheckRange("attempt_limit (ms)", options.attempt_limit.count(), 1, kHourMs, faults);
  CheckRange("attempts_max", options.attempts_max, 1, 16, faults);
  CheckRange("async_connections", options.async_connections, 1, 64, faults);
  CheckRange("blocking_connections", options.blocking_connections, 1, 4096, faults);
  if (options.hedge_after) {
    CheckRange("hedge_after (ms)", options.hedge_after->count(), 0, kHourMs, faults);
  }
  return std::move(faults).ToStatus();
}

}  // namespace firn::client
