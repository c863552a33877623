#pragma once

#include <charconv>
#include <cstdint>
#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

namespace resp {

inline constexpr size_t kNumberMax = 24;  // a mark, 20 digits with their sign, and the end of the
                                          // line

// Writes a mark, a number and the end of the line into space for kNumberMax bytes. Returns their
// end.
inline char* WriteNumber(char mark, int64_t value, char* to) {
  *to++ = mark;
  to = std::to_chars(to, to + kNumberMax, value).ptr;
  *to++ = '\r';
  *to++ = '\n';
  return to;
}

inline void AppendNumber(char mark, int64_t value, OutBuffer& out) {
  char* const begin = out.Room(kNumberMax);
  out.Filled(static_cast<size_t>(WriteNumber(mark, value, begin) - begin));
}

inline void AppendInteger(int64_t value, OutBuffer& out) { AppendNumber(':', value, out); }
inline void AppendArray(size_t items, OutBuffer& out) {
  AppendNumber('*', static_cast<int64_t>(items), out);
}

inline void AppendBulk(std::string_view text, OutBuffer& out) {
  AppendNumber('$', static_cast<int64_t>(text.size()), out);
  out.Append(text);
  out.Append("\r\n");
}

// A number as a bulk string, which is exact in every language.
inline void AppendDecimal(int64_t value, OutBuffer& out) {
  char digits[kNumberMax];
  const char* const end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  AppendBulk({digits, static_cast<size_t>(end - digits)}, out);
}

// `text` must not contain the end of a line.
inline void AppendSimple(std::string_view text, OutBuffer& out) {
  out.Append("+");
  out.Append(text);
  out.Append("\r\n");
}

// "-CODE text". Replaces control characters in `text`, since the end of a line would end the error.
void AppendError(std::string_view code, std::string_view text, OutBuffer& out);

}  // namespace resp
}  // namespace firn::front
