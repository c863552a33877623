#include "server/front/desk/desk_counters.h"

namespace firn::front {

void DeskCounters::Find(const Tag& tag) {
  const auto found = issued_.find(&tag);
  // Beyond the limit all share one count.
  const Tag* key = found != issued_.end() || issued_.size() < kTagsMax ? &tag : nullptr;
  std::lock_guard lock(mutex_);
  auto& count = issued_[key];
  if (!count) count = std::make_unique<Count>();
  last_tag_ = &tag;
  last_issued_ = count.get();
}

void DeskCounters::AddTo(Sums& sums) const {
  sums.calls += calls_.Get();
  for (size_t i = 0; i < kReasons; ++i) sums.refused[i] += refused_[i].Get();
  std::lock_guard lock(mutex_);
  for (const auto& [tag, count] : issued_) {
    sums.issued[tag == nullptr ? "" : tag->name()] += count->Get();
  }
}

}  // namespace firn::front
