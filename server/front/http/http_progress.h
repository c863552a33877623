#pragma once

#include <string_view>

#include "server/front/net/protocol.h"

namespace firn::front {

// How much of `in` is empty lines before a request. Some clients write one behind a body; no more
// of them than two are passed over.
inline constexpr std::string_view kHttpLineEnd = "\r\n";
inline constexpr size_t kHttpEmptyBytesMax = 2 * kHttpLineEnd.size();
size_t EmptyHttpBytes(std::string_view in);

// Whether a request whose length is not known may be whole, or wrong, by now: its header has ended,
// or its last chunk has come, or there is twice as much of it as when it was parsed last. Resumes
// where `read` says that it stopped, so that it reads each byte once, however small the chunks are
// and in however many pieces they come.
bool HttpMayBeWhole(std::string_view in, PartialRead& read);

}  // namespace firn::front
