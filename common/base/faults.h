#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"

namespace firn {

// Gathers what is wrong with one input, so that whoever wrote it is told everything at once instead
// of one fault a try. Thread-compatible.
class Faults {
 public:
  void Add(std::string_view fault) {
    if (!text_.empty()) text_ += "; ";
    text_ += fault;
  }

  bool empty() const { return text_.empty(); }

  // Ok when nothing was added, otherwise kInvalid with the faults in the order they were found.
  Status ToStatus() && { return text_.empty() ? Status() : Invalid(std::move(text_)); }

 private:
  std::string text_;
};

}  // namespace firn
