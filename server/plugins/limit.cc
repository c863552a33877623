#include "server/plugins/limit.h"

#include <algorithm>
#include <limits>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr int64_t kBurstMax = 1'000'000'000;

}  // namespace

LimitPlugin::LimitPlugin(const Clock& clock, Options options)
    : clock_(clock),
      burst_(std::clamp<int64_t>(options.burst, 1, kBurstMax)),
      parts_per_id_([&] {
        const int64_t rate = std::clamp<int64_t>(options.per_second, 1, kPerSecondMax);
        return (1000 * kPartsPerMs + rate - 1) / rate;
      }()),
      full_at_(0) {}

std::optional<Refusal> LimitPlugin::Before(const Request& request) {
  if (request.count > burst_) {
    return Refusal{Reason::kRejected,
                   Cat("the tag's limit lets at most ", burst_, " ids pass at once"), 0, false};
  }
  const int64_t cost = std::max<int64_t>(request.count, 0) * parts_per_id_;
  const int64_t now = clock_.Boot().ms() * kPartsPerMs;
  const int64_t latest = now + burst_ * parts_per_id_;
  int64_t full_at = full_at_.load(std::memory_order_relaxed);
  for (int i = 0; i < kAttempts; ++i) {
    const int64_t after = std::max(full_at, now) + cost;
    if (after > latest) return Full(after - latest);
    if (full_at_.compare_exchange_weak(full_at, after, std::memory_order_relaxed)) return {};
  }
  return Full(1);
}

void LimitPlugin::OnRefusal(const Request& request, const Refusal&) {
  const int64_t cost = std::clamp<int64_t>(request.count, 0, burst_) * parts_per_id_;
  full_at_.fetch_sub(cost, std::memory_order_relaxed);
}

std::optional<Refusal> LimitPlugin::Full(int64_t missing_parts) const {
  const int64_t ms = std::min<int64_t>((missing_parts + kPartsPerMs - 1) / kPartsPerMs,
                                       std::numeric_limits<int32_t>::max());
  return Refusal{Reason::kRejected, "the tag's limit of ids a second is reached",
                 static_cast<int32_t>(ms), false};
}

Result<std::shared_ptr<Plugin>> MakeLimit(const Clock& clock, const TagDefinition& tag) {
  const int64_t burst = tag.limit_burst > 0 ? tag.limit_burst : tag.limit_per_second;
  return std::shared_ptr<Plugin>(std::make_shared<LimitPlugin>(
      clock, LimitPlugin::Options{.per_second = tag.limit_per_second, .burst = burst}));
}

}  // namespace firn
