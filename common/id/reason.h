#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Why no id was given, a server's typed "no"; the same set, in the same order, as the wire
// contract's.
enum class Reason : uint8_t {
  kBadRequest,
  kUnknownTag,
  kNotReady,    // no machine id, or its time is used up
  kClock,       // the wall clock is behind, and the policy is to wait for it
  kOverloaded,  // more was asked for than could be given in the time that the caller would wait
  kExhausted,   // the layout or the number range has come to its end
  kDraining,    // the server is going away
  kRejected,    // a plugin said no
  kStoreDown,
  kInternal,  // a defect of the server, or of a plugin there
};
inline constexpr int kReasons = 10;

// "NOT_READY" and so on, as the wire contract spells it.
std::string_view ReasonName(Reason reason);

// The code that names the same remedy.
Code CodeOf(Reason reason);

}  // namespace firn
