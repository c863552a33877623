#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "common/base/status.h"

namespace firn {

// The JSON of the registry's nodes as a document, and what becomes of members that a later version
// has added: readers pass them over, and whoever rewrites a node hands them on as they were.
//
// Such members travel as text, one JSON object; empty: there are none. Pure functions. For .cc
// files: values in headers say std::string.

using JsonObject = nlohmann::ordered_json;  // members stay in the order in which people read them

// More than a later version may add to a node of ours that older ones rewrite.
inline constexpr size_t kOthersBytesMax = 4096;

// One object without repeated members, and not so deep that a rewrite could not bear it. kCorrupt
// with a reason for anything else.
Result<JsonObject> ParseJsonObject(std::string_view data, size_t bytes_max);

// The members of `object` that `known` does not know.
std::string OthersOf(const JsonObject& object, const std::function<bool(std::string_view)>& known);

// Adds `others` to `object`, but for members that it has by now. kInvalid when they are not what
// OthersOf has given.
Status PutOthers(const std::string& others, JsonObject& object);

}  // namespace firn
