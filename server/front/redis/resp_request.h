#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace firn::front {

// A request of the Redis protocol (RESP2 and RESP3 write it alike): an array of bulk strings.
struct RespRequest {
  // No command needs more words. Those of a longer request are counted, and not kept.
  static constexpr size_t kKept = 16;

  std::array<std::string_view, kKept> kept{};  // views of the input
  size_t count = 0;                            // 0: an empty request, which has no answer

  // Empty if the request has no such word, or if it is not kept.
  std::string_view operator[](size_t i) const { return i < count && i < kKept ? kept[i] : ""; }
};

struct RespLimits {
  size_t words_max;
  size_t bytes_max;  // of the whole request
};

struct RespParsed {
  enum class Kind {
    kNeedMore,  // `bytes` is the least length that the whole request can have
    kWhole,     // `bytes` is its length
    kBad,       // `fault` says why, in the words of Redis; no later byte can be understood
  };
  Kind kind;
  size_t bytes = 0;
  std::string fault{};
};

// Parses the request at the front of `in`. Allocates nothing unless it is bad. Declared lengths are
// compared with the limits before anything else is done with them. Numbers have one spelling:
// no plus, no leading zero. Inline commands are bad: they look like HTTP.
RespParsed ParseResp(std::string_view in, const RespLimits& limits, RespRequest& request);

}  // namespace firn::front
