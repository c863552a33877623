#pragma once

#include <cstddef>
#include <string_view>

#include "common/base/hex.h"

namespace firn::front {

// Returns the trace id in a header `traceparent` of W3C Trace Context: 32 hexadecimal digits.
// Empty if the header is invalid. The result refers to `header`.
//
//     00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
inline std::string_view TraceIdOf(std::string_view header) {
  constexpr size_t kSize = 55, kTrace = 3, kTraceSize = 32, kParent = 36, kParentSize = 16,
                   kFlags = 53;
  if (header.size() < kSize) return {};
  const std::string_view version = header.substr(0, 2);
  // Later versions may append fields, but keep the first four.
  if (header.size() > kSize && (version == "00" || header[kSize] != '-')) return {};
  const auto is_id = [](std::string_view part) {
    return IsLowerHex(part) && part.find_first_not_of('0') != part.npos;
  };
  const std::string_view trace = header.substr(kTrace, kTraceSize);
  const bool dashes =
      header[kTrace - 1] == '-' && header[kParent - 1] == '-' && header[kFlags - 1] == '-';
  const bool valid = dashes && IsLowerHex(version) && version != "ff" && is_id(trace) &&
                     is_id(header.substr(kParent, kParentSize)) &&
                     IsLowerHex(header.substr(kFlags, 2));
  return valid ? trace : std::string_view();
}

// Whether `text` is a trace id of another system: 1 to 64 ASCII letters, digits, and any of "-._:".
// Such a text cannot break a line or a column.
inline bool IsPlainTraceId(std::string_view text) {
  constexpr size_t kSizeMax = 64;
  constexpr std::string_view kPermitted =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-._:";
  return !text.empty() && text.size() <= kSizeMax &&
         text.find_first_not_of(kPermitted) == text.npos;
}

}  // namespace firn::front
