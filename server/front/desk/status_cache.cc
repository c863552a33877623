#include "server/front/desk/status_cache.h"

#include <algorithm>
#include <utility>

namespace firn::front {
namespace {

constexpr int64_t kTagsPerMs = 4;
constexpr int64_t kLeastMs = 5, kMostMs = 250;

Milliseconds LifetimeOf(const ServerReport& report) {
  const auto tags = static_cast<int64_t>(report.tags.size());
  return Milliseconds(std::clamp(tags / kTagsPerMs, kLeastMs, kMostMs));
}

}  // namespace

StatusCache::StatusCache(const ServerView& view, std::function<DeskCounters::Sums()> sums,
                         const Clock& clock)
    : view_(view), sums_(std::move(sums)), clock_(clock) {}

std::shared_ptr<const StatusCache::Snapshot> StatusCache::Get() const {
  // Read before the report: a change during collection then makes the report outdated.
  const uint64_t version = view_.version();
  const BootMs now = clock_.Boot();
  {
    const std::lock_guard lock(mutex_);
    if (latest_ != nullptr && version == version_ && now < until_) return latest_;
  }
  auto made = std::make_shared<Snapshot>(view_.Report(), sums_(), uint64_t{0});
  const std::lock_guard lock(mutex_);
  made->number = ++collected_;
  latest_ = std::move(made);
  version_ = version;
  until_ = now + LifetimeOf(latest_->report);
  return latest_;
}

std::shared_ptr<const StatusCache::Snapshot> StatusCache::GetNew(DoorCall& call) const {
  std::shared_ptr<const Snapshot> latest = Get();
  if (latest->number == call.report && !call.last) return nullptr;
  call.report = latest->number;
  return latest;
}

}  // namespace firn::front
