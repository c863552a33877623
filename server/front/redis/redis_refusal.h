#pragma once

#include <string_view>

#include "server/front/net/buffers.h"
#include "server/issue/refusal.h"

namespace firn::front {

// The code of an error for this reason: "LOADING" and "TRYAGAIN", on which clients retry, or "ERR".
std::string_view RedisCodeOf(Reason reason);

// "-CODE firn REASON: message".
void AppendRefusal(std::string_view code, const Refusal& refusal, OutBuffer& out);

}  // namespace firn::front
