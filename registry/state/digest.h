#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"

namespace firn {

// Fowler, Noll and Vo's hash as sixteen hexadecimal digits: distinguishes names, but does not
// prevent forgery. A value.
class Digest {
 public:
  // The length, or a terminator, separates each item from the next.
  void Add(std::string_view bytes) {
    Add(uint64_t{bytes.size()});
    Mix(bytes);
  }
  void Add(uint64_t number) { Mix(Cat(number, "/")); }

  std::string text() const { return ToHex(value_); }

 private:
  void Mix(std::string_view bytes) { value_ = Fnv1a(bytes, value_); }

  uint64_t value_ = kFnvSeed;
};

}  // namespace firn
