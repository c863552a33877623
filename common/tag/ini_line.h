#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A line of Firn's INI files. Its callers define sections and keys.
//
//     # a comment, as is a line that begins with ;
//     [section]                  ["a name with ] or \" in it"]
//     key = value                ; a comment after a space
//     key = "a text ; with anything, \" and \\"
//
// A value without quotes ends before " ;" and loses the spaces around it. Pure functions.
struct IniLine {
  enum class Kind : uint8_t {
    kNothing,  // blank, or a comment
    kSection,
    kSetting,
    kNeither,
  };

  Kind kind = Kind::kNothing;
  std::string key{};             // of a setting; may be any text without a =
  Result<std::string> text{""};  // a section's name or a setting's value, or its fault
};
IniLine ReadIniLine(std::string_view line);

// Removes the first line from `text` and returns it without its end.
std::string_view TakeIniLine(std::string_view& text);

// Return the line of a section or of a setting, quoted if needed.
std::string WriteIniSection(const std::string& name);
std::string WriteIniSetting(std::string_view key, const std::string& value);

struct LineFault {
  int line = 0;      // counted from 1
  std::string what;  // a sentence that names section and key, if any

  friend bool operator==(const LineFault&, const LineFault&) = default;
};

// Collects the faults of a file. Thread-compatible.
class LineFaults {
 public:
  static constexpr size_t kMost = 100;  // later ones are dropped

  void Add(int line, std::string what);
  // Returns the faults, sorted by line.
  std::vector<LineFault> Take() &&;

 private:
  std::vector<LineFault> faults_;
};

// Ok, or kInvalid with a line of text for each fault: "line 3: ...".
Status StatusOf(const std::vector<LineFault>& faults);

}  // namespace firn
