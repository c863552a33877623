#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace firn {

// Collects the faults of one input, so that an error message can list all of them at once.
// Thread-compatible.
class Faults {
 public:
  void Add(std::string_view fault) {
    if (!text_.empty()) text_ += "; ";
    text_ += fault;
  }

  bool empty() const { return text_.empty(); }

  // Ok when nothing was added, otherwise kInvalid with the faults in the order of their addition.
  Status ToStatus() && { return text_.empty() ? Status() : Invalid(std::move(text_)); }

 private:
  std::string text_;
};

}  // namespace firn
