#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// The `size` numbers that follow the tag's ledger, fewer at the end of 63 bits; kExhausted beyond.
inline Result<Range> RangeAfter(const TagDefinition& tag, int64_t size) {
  const int64_t begin = tag.NextBegin();
  if (size < 1) return Invalid("a range needs a size");
  if (begin >= kRangeEnd) return Exhausted("there are no more numbers of 63 bits");
  return Range{begin, begin + std::min(size, kRangeEnd - begin)};
}

}  // namespace firn
