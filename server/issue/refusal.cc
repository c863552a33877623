#include "server/issue/refusal.h"

namespace firn {

std::string_view ReasonName(Reason reason) {
  switch (reason) {
    case Reason::kBadRequest:
      return "BAD_REQUEST";
    case Reason::kUnknownTag:
      return "UNKNOWN_TAG";
    case Reason::kNotReady:
      return "NOT_READY";
    case Reason::kClock:
      return "CLOCK";
    case Reason::kOverloaded:
      return "OVERLOADED";
    case Reason::kExhausted:
      return "EXHAUSTED";
    case Reason::kDraining:
      return "DRAINING";
    case Reason::kRejected:
      return "REJECTED";
    case Reason::kStoreDown:
      return "STORE_DOWN";
    case Reason::kInternal:
      return "INTERNAL";
  }
  return "no such reason";
}

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << ReasonName(refusal.reason) << ": " << refusal.message;
}

}  // namespace firn
