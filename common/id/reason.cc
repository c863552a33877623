#include "common/id/reason.h"

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

Code CodeOf(Reason reason) {
  switch (reason) {
    case Reason::kBadRequest:
      return Code::kInvalid;
    case Reason::kUnknownTag:
      return Code::kNotFound;
    case Reason::kRejected:
      return Code::kDenied;
    case Reason::kExhausted:
      return Code::kExhausted;
    case Reason::kInternal:
      return Code::kInternal;
    case Reason::kNotReady:
    case Reason::kClock:
    case Reason::kOverloaded:
    case Reason::kDraining:
    case Reason::kStoreDown:
      break;
  }
  return Code::kUnavailable;
}

}  // namespace firn
