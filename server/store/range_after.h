#pragma once

#include <algorithm>
#include <cstdint>

#include "common/base/status.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_definition.h"
#include "server/issue/range.h"

namespace firn {

// The `size` numbers that follow the tag's ledger, fewer at the end of its numbers, which
// CheckNumbersLeft has not found.
inline Result<Range> RangeAfter(const TagDefinition& tag, int64_t size) {
  const int64_t begin = tag.NextBegin();
  if (size < 1) return Invalid("a range needs a size");
  return Range{begin, begin + std::min(size, NumbersEnd(tag) - begin)};
}

}  // namespace firn
