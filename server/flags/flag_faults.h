#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/status.h"

namespace firn {

// Takes the values of flags, and collects the faults of invalid ones.
class FlagFaults {
 public:
  template <typename T>
  T Take(const char* flag, Result<T> result, T otherwise) {
    if (result.ok()) return *std::move(result);
    Add(flag, result.status().message());
    return otherwise;
  }
  template <typename T>
  T Choose(const char* flag, std::optional<T> choice, const char* choices, T otherwise) {
    if (!choice) Add(flag, Cat("must be one of ", choices));
    return choice.value_or(otherwise);
  }
  int64_t Range(const char* flag, int64_t value, int64_t least, int64_t most) {
    if (value < least || value > most) {
      Add(flag, Cat("is ", value, ", it may be ", least, " to ", most));
    }
    return std::clamp(value, least, most);
  }
  void Add(const char* flag, const std::string& what) { all_.Add(Cat("--", flag, " ", what)); }
  Status ToStatus() && { return std::move(all_).ToStatus(); }

 private:
  Faults all_;
};

}  // namespace firn
