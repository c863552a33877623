#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A .properties file as java.util.Properties reads and writes it: the same keys and values come out
// of the same bytes, and Java reads back what ToText writes. A value, thread-compatible.
//
//   # a comment, ! another           key = value      key: value      key value      key
//   escapes \t \n \r \f \uXXXX, \ before any other character is that character
//   a line that ends in an odd number of \ goes on with the next one
//
// Bytes are ISO 8859-1, as in Java; keys and values are UTF-8 in memory. As in Java the last of
// several equal keys wins, but they are reported.
//
// Narrower than Java: a file that ends within a continued line is torn and refused, and so are a
// NUL and half a surrogate pair, which UTF-8 does not have.
class Properties {
 public:
  static constexpr size_t kBytesMax = size_t{1024} * 1024;
  static constexpr size_t kEntriesMax = 10'000;

  struct Entry {
    std::string key;
    std::string value;
    int line = 0;  // on which it begins, from 1; 0 when it was not read from a text

    friend bool operator==(const Entry&, const Entry&) = default;
  };

  // kInvalid names the line at fault.
  static Result<Properties> Parse(std::string_view bytes);

  // Null when there is no such key. Valid until the next change.
  const std::string* Find(std::string_view key) const;

  // Adds the entry or replaces its value. kInvalid for what is not UTF-8 or has a NUL, and beyond
  // kEntriesMax.
  Status Set(std::string key, std::string value);

  // In the order in which the keys first came.
  const std::vector<Entry>& entries() const { return entries_; }
  // A sentence for each key that came again, with both lines.
  const std::vector<std::string>& duplicates() const { return duplicates_; }

  // One "key=value" line an entry, ASCII only.
  std::string ToText() const;

 private:
  friend class PropertiesParser;

  Entry* FindEntry(std::string_view key);

  std::vector<Entry> entries_;
  std::map<std::string, size_t, std::less<>> places_;  // in entries_
  std::vector<std::string> duplicates_;
};

}  // namespace firn
