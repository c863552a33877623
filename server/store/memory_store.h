#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "server/issue/segment/range_store.h"

namespace firn {

// Counters in memory: the shortest possible store, for tests and as a pattern for a user's own. The
// ledger remembers what the store forgets when its process ends, so no number is repeated; without
// a registry it must not be used at all. Thread-safe.
class MemoryStore final : public RangeStore {
 public:
  std::string_view name() const override { return "memory"; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  std::mutex mutex_;
  std::map<std::string, int64_t> next_;  // under mutex_: of each tag
};

}  // namespace firn
