#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The names of tags, and their form as a component of a registry path.
//
// A tag may have almost any name: "order", "Müller & Söhne", "a/b". A path therefore contains an
// encoded form that leaves plain words readable: common/base/url_encoding.h and two more rules.
//
//     order        order
//     a/b c        a%2Fb+c
//     .hidden      %2Ehidden          ("." and ".." never appear)
//     long names   =<base64url>       if the URL form has more than kUrlFormMax characters
//
// Every name has exactly one encoded form of at most 173 characters, so it is a valid file name,
// too. Pure functions.

inline constexpr size_t kTagNameMax = 128;  // bytes
inline constexpr size_t kUrlFormMax = 160;

// Accepts 1 to 128 bytes of UTF-8 without control characters, and without a space at either end.
Status CheckTagName(std::string_view name);

// Returns the path component of a name, which must pass CheckTagName.
std::string EncodeTagName(std::string_view name);

// The inverse. kCorrupt for any text that EncodeTagName does not return, so that no two components
// name the same tag.
Result<std::string> DecodeTagName(std::string_view component);

}  // namespace firn
