#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace firn {

// Why no id was given; the same set, in the same order, as the wire contract's.
enum class Reason : uint8_t {
  kBadRequest,
  kUnknownTag,
  kNotReady,    // no machine id, or its time is used up
  kClock,       // the wall clock is behind, and the policy is to wait for it
  kOverloaded,  // more was asked for than could be given in the time that the caller would wait
  kExhausted,   // the layout or the number range has come to its end
  kDraining,    // this server is going away
  kRejected,    // a plugin said no
  kStoreDown,
  kInternal,  // a defect, here or in a plugin
};
inline constexpr int kReasons = 10;

// "NOT_READY" and so on, as the wire contract spells it.
std::string_view ReasonName(Reason reason);

// A typed "no". A call that ends with one has given no id.
struct Refusal {
  Reason reason = Reason::kInternal;
  std::string message;         // a sentence for a person
  int32_t retry_after_ms = 0;  // when it may be worth coming back; 0: no idea
  bool another_server_may_help = false;

  friend bool operator==(const Refusal&, const Refusal&) = default;
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal);

}  // namespace firn
