#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/front/http/http_message.h"

namespace firn::front {

// The result of parsing the bytes at the front of a connection.
struct HttpParsed {
  enum class Kind : uint8_t { kWhole, kNeedMore, kBad, kHeaderTooLarge, kBodyTooLarge };
  Kind kind = Kind::kNeedMore;
  size_t bytes = 0;             // of kWhole: its length; of kNeedMore: its length, or 0 if unknown
  std::string_view fault = {};  // of kBad: the fault, if it has a name
};

// Parses the request at the front of `in`, which may begin with one or two empty lines. Refuses
// requests that a proxy could read differently, by Beast's rules and RFC 9112: contradicting
// lengths, a length with chunks, a Transfer-Encoding other than `chunked`, a Host that is missing,
// repeated or invalid, folded or malformed fields. `chunks` receives the body if it is chunked;
// `out` refers to it and to `in`. Keeps no state: an incomplete request is parsed from its start
// again when it may be complete (http_progress.h).
HttpParsed ParseHttp(std::string_view in, std::string& chunks, HttpRequest& out);

}  // namespace firn::front
