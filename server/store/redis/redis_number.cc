#include "server/store/redis/redis_number.h"

#include <charconv>

#include "common/base/quote.h"

namespace firn {

Result<int64_t> RedisNumber(std::string_view text) {
  int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc() && stop == end && number >= 0) return number;
  return Corrupt(Quoted(text) + " is no number");
}

}  // namespace firn
