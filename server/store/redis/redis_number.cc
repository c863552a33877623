#include "server/store/redis/redis_number.h"

#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn {

Result<int64_t> RedisNumber(std::string_view text) {
  if (const auto number = ParseNumberWithin<int64_t>(text, 0)) return *number;
  return Corrupt(Quoted(text) + " is not a number");
}

}  // namespace firn
