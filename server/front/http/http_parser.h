#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/front/http/http_message.h"

namespace firn::front {

// What the parser made of the bytes at the front of a connection.
struct HttpParsed {
  enum class Kind : uint8_t { kWhole, kNeedMore, kBad, kHeaderTooLarge, kBodyTooLarge };
  Kind kind = Kind::kNeedMore;
  size_t bytes = 0;             // of kWhole: its length; of kNeedMore: the length to come, or 0
  std::string_view fault = {};  // of kBad: what is wrong, where there is more to say than that
};

// Parses the one request at the front of `in`, with an empty line or two before it, by Beast's
// rules and RFC 9112's, which refuse what a proxy could read in another way: lengths that
// contradict each other, a length beside chunks, a Transfer-Encoding other than `chunked`; no
// host, several, or what is none; folded or malformed fields. `chunks` holds the body when it came
// in chunks; `out` refers to it and to `in`.
// Keeps nothing: a request that is not whole is parsed again from its start when it may be whole
// (http_progress.h).
HttpParsed ParseHttp(std::string_view in, std::string& chunks, HttpRequest& out);

}  // namespace firn::front
