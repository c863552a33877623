#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The names of tags, and how a name becomes one component of a registry path.
//
// A tag is called what its users call it: "order", "Müller & Söhne", "a/b". So a path carries an
// encoded form that leaves plain words readable: common/base/url_encoding.h and two rules beside.
//
//     order        order
//     a/b c        a%2Fb+c
//     .hidden      %2Ehidden          ("." and ".." never appear)
//     long names   =<base64url>       when more than kUrlFormMax characters would be needed
//
// Every name has exactly one encoded form and every form is at most 173 characters, so it fits a
// file name, too. Pure functions.

inline constexpr size_t kTagNameMax = 128;  // bytes
inline constexpr size_t kUrlFormMax = 160;

// Accepts 1 to 128 bytes of UTF-8 without control characters, and without a space at either end.
Status CheckTagName(std::string_view name);

// The path component of a name that CheckTagName accepts.
std::string EncodeTagName(std::string_view name);

// The inverse. Refuses with kCorrupt whatever EncodeTagName would not have written, so that no two
// components stand for one tag.
Result<std::string> DecodeTagName(std::string_view component);

}  // namespace firn
