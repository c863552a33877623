#include "server/node/refusal_status.h"

namespace firn {
namespace {

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

}  // namespace

Status StatusOf(const Refusal& refusal) { return {CodeOf(refusal.reason), refusal.message}; }

}  // namespace firn
