#include "client/fleet/tag_limits.h"

#include <algorithm>

namespace firn::client {
namespace {

constexpr size_t kTagsMax = 1000;

bool IsBefore(const std::map<std::string, Micros, std::less<>>& until, std::string_view tag,
              Micros now) {
  const auto found = until.find(tag);
  return found != until.end() && now < found->second;
}

}  // namespace

void TagLimits::NotReady(Micros until) {
  const std::lock_guard lock(mutex_);
  not_ready_until_ = until;
  Reach(until);
}

void TagLimits::StoreDown(std::string_view tag, Micros until) {
  const std::lock_guard lock(mutex_);
  Remember(store_down_until_, tag, until);
}

void TagLimits::Closed(std::string_view tag, Micros until) {
  const std::lock_guard lock(mutex_);
  Remember(closed_until_, tag, until);
}

void TagLimits::Listed(bool unready) {
  unready_.store(unready, std::memory_order_relaxed);
  const std::lock_guard lock(mutex_);
  closed_until_.clear();
}

void TagLimits::ReopenOne(std::string_view tag) {
  const std::lock_guard lock(mutex_);
  const auto closed = closed_until_.find(tag);
  if (closed != closed_until_.end()) closed_until_.erase(closed);
}

void TagLimits::Reset() {
  const std::lock_guard lock(mutex_);
  not_ready_until_ = Micros(0);
  store_down_until_.clear();
}

ServerHealth TagLimits::LookUp(std::string_view tag, const TagSet& own_numbers, Micros now) const {
  const std::lock_guard lock(mutex_);
  if (IsBefore(closed_until_, tag, now)) return ServerHealth::kDraining;
  if (now < not_ready_until_ && !own_numbers.contains(tag)) return ServerHealth::kEjected;
  return IsBefore(store_down_until_, tag, now) ? ServerHealth::kEjected : ServerHealth::kHealthy;
}

void TagLimits::Remember(TagTimes& times, std::string_view tag, Micros until) {
  if (times.size() >= kTagsMax) times.clear();
  times[std::string(tag)] = until;
  Reach(until);
}

void TagLimits::Reach(Micros until) {
  horizon_.store(std::max(horizon_.load(std::memory_order_relaxed), until),
                 std::memory_order_relaxed);
}

}  // namespace firn::client
