#include "tools/bench/load_record.h"

#include <algorithm>

namespace firn {

uint64_t CountDuplicates(std::vector<int64_t>& ids) {
  std::sort(ids.begin(), ids.end());
  uint64_t duplicates = 0;
  for (size_t i = 1; i < ids.size(); ++i) duplicates += ids[i] == ids[i - 1] ? 1U : 0U;
  return duplicates;
}

void LoadRecord::Answered(int64_t ns, const int64_t* ids, size_t count, bool measured) {
  const size_t room = std::min(count, ids_max_ - kept_.size());
  kept_.insert(kept_.end(), ids, ids + room);
  kept_all_ &= room == count;
  if (!measured) return;
  ++calls_;
  ids_given_ += count;
  latency_.Record(ns);
}

void LoadRecord::Failed(int64_t ns, const Status& why, bool measured) {
  ++failed_;
  if (first_failure_.empty()) first_failure_ = why.message();
  if (!measured) return;
  ++calls_;
  latency_.Record(ns);
}

void LoadRecord::Add(const LoadRecord& other) {
  calls_ += other.calls_;
  failed_ += other.failed_;
  ids_given_ += other.ids_given_;
  latency_.Add(other.latency_);
  if (first_failure_.empty()) first_failure_ = other.first_failure_;
  kept_.insert(kept_.end(), other.kept_.begin(), other.kept_.end());
  kept_all_ &= other.kept_all_;
}

}  // namespace firn
