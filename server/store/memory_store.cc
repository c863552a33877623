#include "server/store/memory_store.h"

#include <algorithm>

#include "common/tag/tag_name.h"

namespace firn {

Status MemoryStore::Check(const TagDefinition& tag) { return CheckTagName(tag.name); }

Result<Range> MemoryStore::Advance(const TagDefinition& tag, int64_t at_least, int64_t size) {
  if (size < 1 || at_least < 0)
    return Invalid("a range must have at least 1 number and begin at 0 or above");
  const std::lock_guard lock(mutex_);
  const auto known = next_.find(tag.name);
  const int64_t begin = std::max(at_least, known == next_.end() ? 0 : known->second);
  if (begin >= kRangeEnd) return Exhausted("there are no more numbers of 63 bits");
  const Range range{begin, begin + std::min(size, kRangeEnd - begin)};
  next_.insert_or_assign(tag.name, range.end);
  return range;
}

}  // namespace firn
