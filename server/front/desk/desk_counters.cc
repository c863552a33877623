#include "server/front/desk/desk_counters.h"

namespace firn::front {

void DeskCounters::Find(const Tag& tag) {
  const auto found = issued_.find(&tag);
  // Tags beyond the limit share one count.
  const Tag* key = found != issued_.end() || issued_.size() < kTagsMax ? &tag : nullptr;
  std::lock_guard lock(mutex_);
  auto& count = issued_[key];
  if (!count) count = std::make_unique<Count>();
  last_tag_ = &tag;
  last_issued_ = count.get();
}

void DeskCounters::Calls::Add(const Calls& more) {
  calls += more.calls;
  for (size_t i = 0; i < kReasons; ++i) refused[i] += more.refused[i];
}

void DeskCounters::AddTo(Sums& sums, ProtocolKind protocol) const {
  Calls own{.calls = calls_.Get()};
  for (size_t i = 0; i < kReasons; ++i) own.refused[i] = refused_[i].Get();
  sums.Add(own);
  sums.protocols[protocol].Add(own);
  std::lock_guard lock(mutex_);
  for (const auto& [tag, count] : issued_) {
    sums.issued[tag == nullptr ? "" : tag->name()] += count->Get();
  }
}

}  // namespace firn::front
