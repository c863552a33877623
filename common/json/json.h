#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace firn {

// JSON as documents: what is read and written anywhere in the house comes through here or through
// json_object.h. Pure functions. For .cc files, since the library's header is large: values in
// headers say std::string.

using Json = nlohmann::ordered_json;  // members stay in the order in which people read them

// How many values a document may hold where its reader sets no other limit.
inline constexpr size_t kJsonValuesMax = 512;

// Returns the one object that `text` holds, without repeated members, and not so deep that writing
// it again could not bear it. kCorrupt with a reason for anything else: longer than `bytes_max`, not
// JSON, more after the object, not UTF-8, a number that no double holds. Members of objects and
// items of lists count as values, at every depth; parsing stops at the first beyond `values_max`.
//
// Json finds a member by comparing it with each one, so a reader that looks up every member of an
// object must keep `values_max` small.
Result<Json> ParseJson(std::string_view text, size_t bytes_max, size_t values_max = kJsonValuesMax);

// Nothing for whatever is not a whole number of 64 bits with a sign.
std::optional<int64_t> WholeNumber(const Json& json);

// In one line; or each member on its own, indented by so many spaces. Bytes that are not UTF-8
// become replacement characters.
std::string JsonText(const Json& json, int indent = -1);

// Appends `text` in quotes, as JsonText writes it.
void AppendJsonText(std::string& out, std::string_view text);

}  // namespace firn
