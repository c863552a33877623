#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"

namespace firn {

// An id of a layout as text that people read: its time in UTC, machine id and sequence.
//
//     20261122134501123-0005-0042           2026-11-22 13:45:01.123, machine id 5, sequence 42
//     20261122134501-0001-0000042-0-2       without milliseconds where ticks are whole seconds
//
// Machine id and sequence have as many digits as the layout's largest; a layout's version and
// method, which no layout but Vesta's has, follow in that order. The time is in UTC and in no other
// zone, since a zone's clocks show an hour twice a year.
//
// Every id of the layout has one text, of one width, and no other id has the same: the fields are
// all that tells ids of a layout apart. A value, readable by any number of threads.
class FieldsText {
 public:
  explicit FieldsText(const Layout& layout);

  // Of a number that is no id of the layout: its decimal digits.
  void AppendTo(std::string& out, int64_t id) const;

  // kInvalid for whatever AppendTo would not have written for an id of the layout.
  Result<int64_t> ParseId(std::string_view text) const;

  size_t width() const { return width_; }

 private:
  Layout layout_;
  bool whole_seconds_;
  size_t width_;
};

}  // namespace firn
