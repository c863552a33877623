#include "server/front/redis/redis_refusal.h"

#include "common/base/cat.h"
#include "server/front/redis/resp_answer.h"

namespace firn::front {

std::string_view RedisCodeOf(Reason reason) {
  switch (reason) {
    case Reason::kNotReady:
    case Reason::kClock:
    case Reason::kDraining:
      return "LOADING";
    case Reason::kOverloaded:
    case Reason::kStoreDown:
      return "TRYAGAIN";
    case Reason::kBadRequest:
    case Reason::kUnknownTag:
    case Reason::kExhausted:
    case Reason::kRejected:
    case Reason::kInternal:
      break;
  }
  return "ERR";
}

Refusal TooLargeForInteger() {
  return {Reason::kBadRequest,
          "the id is 2^53 or above, which some Redis clients round as an integer; take it with "
          "FIRN.ID, or start the servers with --redis_incr_64bit if every client reads 64 bits",
          0, false};
}

void AppendRefusal(std::string_view code, const Refusal& refusal, OutBuffer& out) {
  resp::AppendError(code, Cat("firn ", ReasonName(refusal.reason), ": ", refusal.message), out);
}

}  // namespace firn::front
