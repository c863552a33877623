#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace firn {

// Counts, for each tag, the numbers that a source has taken and lost. Thread-safe.
class Waste {
 public:
  void Add(const std::string& tag, int64_t count) {
    const std::lock_guard lock(mutex_);
    counts_[tag] += count;
  }

  int64_t Of(const std::string& tag) const {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(tag);
    return found == counts_.end() ? 0 : found->second;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

}  // namespace firn
