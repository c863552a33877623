#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The reasons of a refusal, with the values and the order of the wire contract.
enum class Reason : uint8_t {
  kBadRequest,
  kUnknownTag,
  kNotReady,    // no machine id, or its granted time is used up
  kClock,       // the wall clock is behind, and the policy is to wait for it
  kOverloaded,  // the ids cannot be issued within the time that the caller is willing to wait
  kExhausted,   // the layout's time or the number range is exhausted
  kDraining,    // the server is stopping
  kRejected,    // a plugin refused the call
  kStoreDown,
  kInternal,  // a defect of the server, or of a plugin there
};
inline constexpr int kReasons = 10;

// "NOT_READY" and so on, as the wire contract spells it.
std::string_view ReasonName(Reason reason);

// Returns the code with the same remedy.
Code CodeOf(Reason reason);

}  // namespace firn
