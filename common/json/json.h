#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace firn {

// JSON documents. All of Firn parses and writes JSON by these functions or by json_object.h. Pure
// functions. Include this only in .cc files, because the library's header is large; use std::string
// for values in headers.

using Json = nlohmann::ordered_json;  // keeps the order of members, for people

// Default limit of the number of values in a document.
inline constexpr size_t kJsonValuesMax = 512;

// Returns the object in `text`. kCorrupt with a reason if the text is longer than `bytes_max`, is
// not JSON or not UTF-8, contains more than the object, is nested too deep, has a duplicate member,
// or a number that no double represents. Members of objects and items of lists count as values, at
// every depth; parsing stops at the first value beyond `values_max`.
//
// Json finds a member by comparing its name with all members, so a caller that looks up every
// member of an object must keep `values_max` small.
Result<Json> ParseJson(std::string_view text, size_t bytes_max, size_t values_max = kJsonValuesMax);

// Returns nullopt for anything but a whole number that fits in a signed 64-bit integer.
std::optional<int64_t> WholeNumber(const Json& json);

// Writes the document on one line or, with `indent`, each member on its own line. Bytes that are
// not UTF-8 become replacement characters.
std::string JsonText(const Json& json, int indent = -1);

// Appends `text` in quotes, as JsonText writes it.
void AppendJsonText(std::string& out, std::string_view text);

}  // namespace firn
