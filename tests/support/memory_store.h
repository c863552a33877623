#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "common/tag/tag_name.h"
#include "server/issue/segment/range_store.h"

namespace firn {

// Counters in memory: the shortest possible store, and a pattern for a user's own. The ledger
// remembers what the store forgets when its process ends, so no number is repeated; without a
// registry it must not be used at all. Thread-safe.
class MemoryStore final : public RangeStore {
 public:
  std::string_view name() const override { return "memory"; }
  Status Check(const TagDefinition& tag) override { return CheckTagName(tag.name); }
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override {
    if (size < 1 || at_least < 0) {
      return Invalid("a range must have at least 1 number and begin at 0 or above");
    }
    const std::lock_guard lock(mutex_);
    const auto known = next_.find(tag.name);
    const int64_t begin = std::max(at_least, known == next_.end() ? 0 : known->second);
    if (begin >= kRangeEnd) return Exhausted("there are no more numbers of 63 bits");
    const Range range{begin, begin + std::min(size, kRangeEnd - begin)};
    next_.insert_or_assign(tag.name, range.end);
    return range;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> next_;  // under mutex_: of each tag
};

}  // namespace firn
