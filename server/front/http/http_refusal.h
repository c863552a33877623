#pragma once

#include "common/base/status.h"
#include "server/front/http/http_message.h"
#include "server/issue/refusal.h"

namespace firn::front {

// The status of a reason: 400 invalid request, 404 no such tag, 409 exhausted, 429 too many, 500 an
// internal fault, 503 try later or elsewhere.
int HttpStatusOf(Reason reason);

// Writes {"error":{"reason","message","retry_after_ms","another_server_may_help"}}, with status and
// Retry-After.
void AnswerRefusal(const Refusal& refusal, HttpAnswer& answer);

inline void AnswerBad(const Status& status, HttpAnswer& answer) {
  AnswerRefusal({Reason::kBadRequest, status.message(), 0, false}, answer);
}

}  // namespace firn::front
