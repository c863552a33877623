#include "server/front/http/http_refusal.h"

#include <string>
#include <vector>

#include "common/base/cat.h"

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

Result<ComposeRequest> ReadComposeRequest(const HttpRequest& request) {
  ComposeRequest out;
  FIRN_ASSIGN(out.tick, request.Number("ticks"));
  FIRN_ASSIGN(const auto time_ms, request.Number("time_ms"));
  if (time_ms) out.time = WallMs(*time_ms);
  const struct {
    const char* name;
    std::optional<uint64_t>& field;
  } kFields[] = {{"machine", out.machine},   {"worker", out.worker},   {"rack", out.rack},
                 {"sequence", out.sequence}, {"version", out.version}, {"type", out.type},
                 {"method", out.method}};
  for (const auto& wanted : kFields) {
    FIRN_ASSIGN(const auto number, request.Number(wanted.name));
    if (!number) continue;
    if (*number < 0) return Invalid(Cat(wanted.name, " is negative"));
    wanted.field = static_cast<uint64_t>(*number);
  }
  return out;
}

}  // namespace firn::front
