#include "server/front/http/http_progress.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "common/base/parse.h"

namespace firn::front {
namespace {

// Ends a header, and the fields after the last chunk.
constexpr std::string_view kEmptyLine = "\r\n\r\n";
constexpr size_t kNone = std::string_view::npos;

// Finds `what` after `begin`, in the part of `in` that was not searched yet.
size_t FindNext(std::string_view in, std::string_view what, size_t begin, PartialRead& read) {
  const size_t overlap = std::min(read.searched, what.size() - 1);
  const size_t found = in.find(what, std::max(begin, read.searched - overlap));
  read.searched = found == kNone ? in.size() : found;
  return found;
}

// The length in a chunk's first line, without the extensions that may follow it.
std::optional<uint64_t> ChunkSize(std::string_view line) {
  return ParseNumber<uint64_t>(line.substr(0, line.find_first_of("; \t")), 16);
}

// Also true if the parser will refuse the request.
bool HasLastChunk(std::string_view in, PartialRead& read) {
  while (!read.last_chunk) {
    if (in.size() < read.chunk) return false;
    if (in.substr(read.chunk - kHttpLineEnd.size(), kHttpLineEnd.size()) != kHttpLineEnd)
      return true;
    const size_t line_end = FindNext(in, kHttpLineEnd, read.chunk, read);
    if (line_end == kNone) return false;
    const auto size = ChunkSize(in.substr(read.chunk, line_end - read.chunk));
    if (!size || *size > SIZE_MAX / 2) return true;
    if (*size == 0) {
      read.last_chunk = true;
    } else {
      read.chunk = line_end + static_cast<size_t>(*size) + 2 * kHttpLineEnd.size();
    }
  }
  return FindNext(in, kEmptyLine, read.chunk, read) != kNone;
}

}  // namespace

size_t EmptyHttpBytes(std::string_view in) {
  size_t bytes = 0;
  while (bytes < kHttpEmptyBytesMax && in.substr(bytes).starts_with(kHttpLineEnd)) {
    bytes += kHttpLineEnd.size();
  }
  return bytes;
}

bool HttpMayBeWhole(std::string_view in, PartialRead& read) {
  if (in.size() >= 2 * read.parsed) return true;
  if (read.chunk == 0) {
    const size_t header_end = FindNext(in, kEmptyLine, EmptyHttpBytes(in), read);
    if (header_end == kNone) return false;
    // A request without chunks now has a known length, so this function is not called again.
    read.chunk = header_end + kEmptyLine.size();
    if (read.chunk > read.parsed) return true;
  }
  return HasLastChunk(in, read);
}

}  // namespace firn::front
