#include "server/front/http/http_refusal.h"

#include <string>

#include "common/json/json.h"

namespace firn::front {

int HttpStatusOf(Reason reason) {
  switch (reason) {
    case Reason::kBadRequest:
      return 400;
    case Reason::kUnknownTag:
      return 404;
    case Reason::kExhausted:
      return 409;
    case Reason::kRejected:
      return 429;
    case Reason::kInternal:
      return 500;
    case Reason::kNotReady:
    case Reason::kClock:
    case Reason::kOverloaded:
    case Reason::kDraining:
    case Reason::kStoreDown:
      return 503;
  }
  return 500;
}

void AnswerRefusal(const Refusal& refusal, HttpAnswer& answer) {
  answer.status = HttpStatusOf(refusal.reason);
  answer.content_type = HttpAnswer::kJson;
  answer.retry_after_ms = refusal.retry_after_ms;
  std::string& out = answer.body;
  out = "{\"error\":{\"reason\":\"";
  out += ReasonName(refusal.reason);
  out += "\",\"message\":";
  AppendJsonText(out, refusal.message);
  out += ",\"retry_after_ms\":";
  AppendNumber(out, refusal.retry_after_ms);
  out += ",\"another_server_may_help\":";
  out += refusal.another_server_may_help ? "true}}" : "false}}";
}

}  // namespace firn::front
