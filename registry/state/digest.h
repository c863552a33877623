#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace firn {

// Fowler, Noll and Vo's hash as sixteen hexadecimal digits: names that differ shall look different,
// nobody is kept from forging. A value.
class Digest {
 public:
  // What is added is told apart from what comes next by its length or its end.
  void Add(std::string_view bytes) {
    Add(uint64_t{bytes.size()});
    Mix(bytes);
  }
  void Add(uint64_t number) { Mix(std::to_string(number) + "/"); }

  std::string text() const {
    std::string hex(16, '0');
    for (size_t i = 0; i < hex.size(); ++i) {
      hex[i] = "0123456789abcdef"[value_ >> (60 - 4 * i) & 15];
    }
    return hex;
  }

 private:
  void Mix(std::string_view bytes) {
    for (const char c : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    }
  }

  uint64_t value_ = 0xcbf29ce484222325;
};

}  // namespace firn
