#pragma once

#include <string_view>

#include "server/front/net/protocol.h"

namespace firn::front {

// EmptyHttpBytes returns the size of the empty lines before a request. Some clients send one after
// a body; at most two are skipped.
inline constexpr std::string_view kHttpLineEnd = "\r\n";
inline constexpr size_t kHttpEmptyBytesMax = 2 * kHttpLineEnd.size();
size_t EmptyHttpBytes(std::string_view in);

// Whether a request of unknown length may be complete or invalid by now: its header or last chunk
// has ended, or the input has doubled since it was parsed. Continues at the position in `read`, so
// each byte is read once, in however many pieces the chunks arrive.
bool HttpMayBeWhole(std::string_view in, PartialRead& read);

}  // namespace firn::front
