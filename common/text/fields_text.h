#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"

namespace firn {

// The text form of an id's fields: its time in UTC, machine id and sequence.
//
//     20261122134501123-0005-0042           2026-11-22 13:45:01.123, machine id 5, sequence 42
//     20261122134501-0001-0000042-0-2       without milliseconds where ticks are whole seconds
//
// Machine id and sequence have as many digits as their largest values in the layout. Version and
// method, which only Vesta's layouts have, follow in that order. The time is always in UTC, because
// other zones may repeat an hour once a year.
//
// All texts of a layout have the same width. Every id has its own text, because the fields
// determine the id. A value, readable by any number of threads.
class FieldsText {
 public:
  explicit FieldsText(const Layout& layout);

  // Appends the decimal digits of a number that is not an id of the layout.
  void AppendTo(std::string& out, int64_t id) const;

  // kInvalid for any text that AppendTo does not write for an id of the layout.
  Result<int64_t> ParseId(std::string_view text) const;

  size_t width() const { return width_; }

 private:
  Layout layout_;
  bool whole_seconds_;
  size_t width_;
};

}  // namespace firn
