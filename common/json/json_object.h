#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json.h"

namespace firn {

// Reads and writes an object of texts, whole numbers and booleans, member by member: nodes of the
// registry, and files. Members of later versions are kept as text: a JSON object, or "" if there
// are none.

// Reads members by name. Keeps the first fault, kCorrupt, and ignores later calls: read all
// members, then check status().
class JsonReader {
 public:
  static constexpr size_t kTextBytesMax = 255;
  static constexpr size_t kOthersBytesMax = 4096;  // a later version must not add more to a node

  JsonReader(std::string_view json, size_t bytes_max, size_t values_max = kJsonValuesMax);
  explicit JsonReader(const Json& object);  // such as a nested one; it must outlive the reader
  JsonReader(const JsonReader&) = delete;
  JsonReader& operator=(const JsonReader&) = delete;

  // Returns the member, of any type, or null if it is absent.
  const Json* Find(std::string_view name) const { return object_->Find(name); }

  // Require the member, with its type. A text has at most that many bytes and no control
  // characters; a number is whole and from `min` to `max`. Names are not copied.
  JsonReader& Text(std::string_view name, std::string& to, size_t bytes_max = kTextBytesMax);
  JsonReader& Number(std::string_view name, int64_t& to, int64_t min, int64_t max = INT64_MAX);
  JsonReader& Flag(std::string_view name, bool& to);
  // Optional members: an absent one leaves `to` unchanged.
  JsonReader& NumberIfAny(std::string_view name, int64_t& to, int64_t min, int64_t max);
  JsonReader& FlagIfAny(std::string_view name, bool& to);

  // Returns the member as Find does, and counts it as read.
  const Json* Take(std::string_view name);

  // Returns the members that were not read, for writing them again.
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

// Writes such an object, with members in the order of the calls. Bytes that are not UTF-8 become
// replacement characters, control characters become '?', so that JsonReader accepts the result.
class JsonWriter {
 public:
  JsonWriter() { json_.reserve(320); }

  JsonWriter& Text(std::string_view name, std::string_view value);
  JsonWriter& Number(std::string_view name, int64_t value);
  JsonWriter& Flag(std::string_view name, bool value);
  // `object` is the text of a JSON object.
  JsonWriter& Object(std::string_view name, std::string_view object);
  // Adds the members that a reader of the same object has set aside.
  JsonWriter& Others(std::string_view others);

  // Returns the object; the writer must not be used afterwards.
  std::string Done();

 private:
  void Name(std::string_view name);

  std::string json_ = "{";
};

}  // namespace firn
