#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// The loss of a lease. Next() fails until the generator has another lease.
struct LeaseLoss {
  enum class Kind : uint8_t {
    kGone,     // the server ended it: another process, or a copy of this one, may use its ids
    kExpired,  // its interval has ended without an extension
  };
  Kind kind;
  MachineId machine;
  std::string why;  // a sentence
};

// Options of a LocalGenerator.
struct LeaseOptions {
  static constexpr size_t kNameMax = 64;

  static constexpr Milliseconds kAheadMin{2'000}, kAheadMax{86'400'000};

  std::string name{};  // label for operators: 1 to kNameMax letters, digits or characters of -_.:/@
  // Desired length of the interval, from kAheadMin to kAheadMax. A server grants at most its
  // --claim_window_ms.
  Milliseconds ahead{60'000};
  std::optional<uint32_t> rack{};  // of the machine id; absent: any
  // Both hooks run on the generator's thread, must return soon, and must not destroy the generator.
  std::function<void(const LeaseLoss&)> on_lost{};
  std::function<void(const Status&)> on_failure{};  // a request failed; the generator retries

  Milliseconds attempt{2'000};    // timeout after which a request without an outcome is sent again
  Milliseconds retry_first{200};  // wait after a failure; doubles with each one
  // Longest wait between attempts, unless a twelfth of the interval (but at least 100 ms) is
  // shorter. The interval is the last one that a server granted, at most `ahead`.
  Milliseconds retry_max{2'000};
};

// Returns kInvalid for a name that no server accepts, or an `ahead` outside kAheadMin to kAheadMax.
Status CheckLeaseOptions(const LeaseOptions& options);

}  // namespace firn
