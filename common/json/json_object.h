#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"

namespace firn {

// One object of texts, whole numbers and booleans, member by member: how the registry's nodes and
// our own files are read and written. Members that a later version has added are kept: they travel
// as text, one JSON object, empty when there are none. For .cc files, as json.h.

// Reads what is asked for by name. The first fault stays, kCorrupt, and what is asked for after it
// is left alone: so ask for all, then look at status().
class JsonReader {
 public:
  static constexpr size_t kTextBytesMax = 255;
  static constexpr size_t kOthersBytesMax = 4096;  // more than a later version may add to a node

  JsonReader(std::string_view json, size_t bytes_max, size_t values_max = kJsonValuesMax);
  explicit JsonReader(const Json& object);  // such as one within another; it outlives the reader
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // The member, whatever it is; null when it is not there.
  const Json* Find(std::string_view name) const;

  // Each must be there, and of its type. A text is at most so long, without control characters; a
  // number is whole and from `min` to `max`. Names are not copied.
  JsonReader& Text(std::string_view name, std::string& to, size_t bytes_max = kTextBytesMax);
  JsonReader& Number(std::string_view name, int64_t& to, int64_t min, int64_t max = INT64_MAX);
  JsonReader& Flag(std::string_view name, bool& to);
  // What is not there leaves `to` as it is.
  JsonReader& NumberIfAny(std::string_view name, int64_t& to, int64_t min, int64_t max);
  JsonReader& FlagIfAny(std::string_view name, bool& to);

  // The members that were not asked for, to be written again.
  JsonReader& Others(std::string& to);

  const Status& status() const { return status_; }

 private:
  const Json* Ask(std::string_view name);
  void Fault(std::string_view name, std::string_view what);

  Json own_;
  const Json* object_ = &own_;
  std::vector<std::string_view> asked_;
  Status status_;
};

// Writes such an object, members in the order of the calls. Bytes that are not UTF-8 become
// replacement characters, control characters become '?': what is written reads back.
class JsonWriter {
 public:
  JsonWriter() { json_.reserve(320); }

  JsonWriter& Text(std::string_view name, std::string_view value);
  JsonWriter& Number(std::string_view name, int64_t value);
  JsonWriter& Flag(std::string_view name, bool value);
  // What a reader has put aside of the same object; its own members are written by their names.
  JsonWriter& Others(std::string_view others);

  // The object; the writer is done with.
  std::string Done();

 private:
  void Name(std::string_view name);

  std::string json_ = "{";
};

}  // namespace firn
