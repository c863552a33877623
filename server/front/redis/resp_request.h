#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace firn::front {

// A request of the Redis protocol, the same in RESP2 and RESP3: an array of bulk strings.
struct RespRequest {
  // Enough for every command. Further words are counted, but not stored.
  static constexpr size_t kKept = 16;

  std::array<std::string_view, kKept> kept{};  // views of the input
  size_t count = 0;                            // 0: an empty request, which has no answer

  // Empty if the request has no such word, or if it is not stored.
  std::string_view operator[](size_t i) const { return i < count && i < kKept ? kept[i] : ""; }
};

struct RespLimits {
  size_t words_max;
  size_t bytes_max;  // of the whole request
};

struct RespParsed {
  enum class Kind {
    kNeedMore,  // `bytes` is the minimum length of the request
    kWhole,     // `bytes` is its length
    kBad,       // `fault` is the reason in Redis' words; the rest of the input is unusable
  };
  Kind kind;
  size_t bytes = 0;
  std::string fault{};
};

// Parses the request at the front of `in`. Allocates only if it is invalid. Checks declared lengths
// against the limits before it uses them. Numbers have no plus sign and no leading zero. Inline
// commands are invalid, because they look like HTTP.
RespParsed ParseResp(std::string_view in, const RespLimits& limits, RespRequest& request);

}  // namespace firn::front
