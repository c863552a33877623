#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "server/issue/segment/range_store.h"

namespace firn {

// Counters in memory: the shortest store there can be, for tests and as a pattern for a user's own.
// What it forgets with its process the ledger remembers, so numbers do not come again; without a
// registry it must not be used at all. Thread-safe.
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
