#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The one shape of JSON that most of the registry's nodes have: an object of strings, whole numbers
// and booleans, nothing nested that this version knows. Pure functions; text of strangers is
// refused with a reason, never half read.

// One member that a reader wants: where its value goes and what it may be.
struct JsonField {
  static constexpr size_t kTextBytesMax = 255;

  static JsonField Text(std::string_view name, std::string* to, size_t bytes_max = kTextBytesMax) {
    return {name, to, nullptr, nullptr, 0, static_cast<int64_t>(bytes_max)};
  }
  static JsonField Number(std::string_view name, int64_t* to, int64_t min, int64_t max) {
    return {name, nullptr, to, nullptr, min, max};
  }
  static JsonField Flag(std::string_view name, bool* to) {
    return {name, nullptr, nullptr, to, 0, 1};
  }

  std::string_view name;
  std::string* text;
  int64_t* number;
  bool* flag;
  int64_t min;
  int64_t max;  // of a text: bytes
};

// Fills every field from `json`, which must hold each of them once, in any order. Members that were
// not asked for, whatever their shape, are a later version's: they go into `others`, to be written
// again (see json_object.h), or are passed over without it.
// Refused with kCorrupt, some fields perhaps already filled: longer than `bytes_max`, not JSON,
// another shape, a member missing or twice, a number that is not whole or out of range, a text that
// is too long or has a control character, more of others than kOthersBytesMax. At most 16 fields.
Status ReadFlatJson(std::string_view json, size_t bytes_max, std::span<const JsonField> fields,
                    std::string* others = nullptr);

// Writes such an object, members in the order of the calls. Bytes that are not UTF-8 become
// replacement characters, control characters become '?': what is written reads back.
class FlatJsonWriter {
 public:
  FlatJsonWriter() { json_.reserve(320); }

  FlatJsonWriter& Text(std::string_view name, std::string_view value);
  FlatJsonWriter& Number(std::string_view name, int64_t value);
  FlatJsonWriter& Flag(std::string_view name, bool value);
  // What ReadFlatJson has put aside of the same node; its own members are written by their names.
  FlatJsonWriter& Others(std::string_view others);

  // The object; the writer is done with.
  std::string Done();

 private:
  void Name(std::string_view name);

  std::string json_ = "{";
};

}  // namespace firn
