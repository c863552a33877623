#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/id/layout.h"

namespace firn {

// The text form of an id as a UUID of version 7 (RFC 9562):
//
//     016d0435-d8e2-7103-afa8-d52109f5e000
//
//     48 bits   start of the id's tick, in milliseconds since 1970
//      4 bits   version: 7
//     12 bits   the id's bits 63 to 52
//      2 bits   variant: 2
//     52 bits   the id's bits 51 to 0
//     10 bits   zero
//
// The UUID contains all 64 bits of the id, so two ids never have the same UUID. Within a
// millisecond UUIDs sort like their ids. It has no random bits: an observer of some UUIDs can guess
// others, as with ids themselves. A value, readable by any number of threads.
class Uuid7Text {
 public:
  explicit Uuid7Text(const Layout& layout) : layout_(layout) {}

  // Appends the decimal digits of a number that is not an id of the layout.
  void AppendTo(std::string& out, int64_t id) const;

  // Accepts digits of either case. kInvalid for any other text that AppendTo does not write for an
  // id of the layout.
  Result<int64_t> ParseId(std::string_view text) const;

  static constexpr size_t width() { return 36; }

 private:
  Layout layout_;
};

}  // namespace firn
