#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// A lease that its generator has lost. Until the next one, Next() fails.
struct LeaseLoss {
  enum class Kind : uint8_t {
    kGone,  // the server ended it: another process may have its ids, or a copy of this one exists
    kExpired,  // its interval has ended, and no server extended it
  };
  Kind kind;
  MachineId machine;
  std::string why;  // a sentence
};

// Options of a LocalGenerator.
struct LeaseOptions {
  static constexpr size_t kNameMax = 64;

  static constexpr Milliseconds kAheadMin{2'000}, kAheadMax{86'400'000};

  std::string name{};  // label for operators: 1 to kNameMax letters, digits or marks -_.:/@
  // Desired length of the interval, from kAheadMin to kAheadMax. A server gives at most its
  // --claim_window_ms.
  Milliseconds ahead{60'000};
  std::optional<uint32_t> rack{};  // of the machine id; absent: any
  // Both run on the generator's thread, must return soon, and must not destroy the generator.
  std::function<void(const LeaseLoss&)> on_lost{};
  std::function<void(const Status&)> on_failure{};  // a request failed; another one will follow

  Milliseconds attempt{2'000};    // time after which a request without an outcome is sent again
  Milliseconds retry_first{200};  // wait after a failure; doubles with each one
  // Longest wait, unless a twelfth of the interval (but at least 100 ms) is shorter. The interval
  // is the one that a server gave last, at most `ahead`.
  Milliseconds retry_max{2'000};
};

// Returns kInvalid for a name that no server accepts, or an `ahead` outside kAheadMin to kAheadMax.
Status CheckLeaseOptions(const LeaseOptions& options);

}  // namespace firn
