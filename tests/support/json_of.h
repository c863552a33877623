#pragma once

#include <cstdint>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "common/base/cat.h"
#include "common/json/json.h"

namespace firn {

// Returns the value of any type in `text`; null if it is not JSON.
inline Json JsonOf(std::string_view text) {
  const Result<Json> read = ParseJson(Cat("{\"value\":", text, "}"), text.size() + 10, SIZE_MAX);
  return read.ok() ? read->at("value") : Json();
}

inline Json JsonOfFile(const std::string& path) {
  std::ifstream file(path);
  return JsonOf(std::string(std::istreambuf_iterator<char>(file), {}));
}

// Returns the whole number; throws if it is none, which fails the test.
template <typename T = int64_t>
T NumberOf(const Json& json) {
  return static_cast<T>(json.whole().value());
}

}  // namespace firn
