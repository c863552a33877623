#pragma once

#include <cstdint>
#include <string_view>

#include "server/front/net/buffers.h"
#include "server/issue/refusal.h"

namespace firn::front {

// The code of an error for this reason: "LOADING" and "TRYAGAIN", on which clients retry, or "ERR".
std::string_view RedisCodeOf(Reason reason);

// The largest integer reply that is exact in clients that use floating point, such as those for
// JavaScript.
inline constexpr int64_t kExactMax = (int64_t{1} << 53) - 1;

// The refusal of a larger integer reply. It names other ways to get the id.
Refusal TooLargeForInteger();

// "-CODE firn REASON: message".
void AppendRefusal(std::string_view code, const Refusal& refusal, OutBuffer& out);

}  // namespace firn::front
