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

  std::string name{};              // label for operators, at most kNameMax bytes
  Milliseconds ahead{60'000};      // desired length of the interval
  std::optional<uint32_t> rack{};  // of the machine id; absent: any
  // Both run on the generator's thread, must return soon, and must not destroy the generator.
  std::function<void(const LeaseLoss&)> on_lost{};
  std::function<void(const Status&)> on_failure{};  // a request failed, and will be repeated

  Milliseconds attempt{2'000};    // time after which a request without an outcome is sent again
  Milliseconds retry_first{200};  // wait after a failure; doubles with each one
  Milliseconds retry_max{10'000};
};

}  // namespace firn
