#include "server/issue/waiting_line.h"

#include <algorithm>

#include "common/base/cat.h"

namespace firn {
namespace {

using Micros = WaitingLine::Micros;

// The rate is measured over the last kMeasured / 2 to kMeasured.
constexpr Micros kMeasured{200'000};
constexpr Micros kAskAgainMax{5'000};
constexpr int64_t kRetryMsMax = 60'000;

int64_t MsOf(Micros time) { return std::chrono::ceil<std::chrono::milliseconds>(time).count(); }

Refusal TakesTooLong(const IssueCall& call, Micros needs) {
  const int64_t late = MsOf(needs - call.patience);
  return {Reason::kOverloaded,
          Cat(call.missing(), " ids would take ", MsOf(needs),
              " ms here now, and this call can wait ", std::max<int64_t>(call.patience.count(), 0),
              " ms; request fewer ids at once, or try again"),
          static_cast<int32_t>(std::clamp<int64_t>(late, 1, kRetryMsMax)), true};
}

}  // namespace

WaitingLine::WaitingLine(int64_t ids, Micros time) {
  const int64_t times = std::max<int64_t>(1, kMeasured / 10 / time);
  ids_ = ids * times;
  time_ = time * times;
}

Micros WaitingLine::TimeFor(int64_t ids) const {
  const double for_one = static_cast<double>(time_.count()) / static_cast<double>(ids_);
  return Micros(static_cast<int64_t>(static_cast<double>(ids) * for_one));
}

void WaitingLine::Measure(int64_t got, Micros now) {
  ids_ += got;
  time_ += std::max(now - since_, Micros(0));
  since_ = now;
  if (time_ < kMeasured) return;
  time_ /= 2;
  ids_ = std::max<int64_t>(ids_ / 2, 1);
}

std::optional<Refusal> WaitingLine::Join(IssueCall& call, Micros now, Micros at_best) {
  if (call.place != nullptr && call.place->line == this) return std::nullopt;
  const std::lock_guard lock(mutex_);
  int64_t ids = call.missing();
  std::erase_if(places_, [&](const std::weak_ptr<LinePlace>& weak) {
    const auto place = weak.lock();
    const bool waits = IsWaiting(place.get(), now);
    if (waits) ids += place->missing;
    return !waits;
  });
  // If the line is empty, the best case admits the call, so that a low rate is measured again.
  // Otherwise there is a margin, because a call that times out shortly before it has all its ids
  // wastes the most.
  const Micros needs = places_.empty() ? at_best : std::max(at_best, TimeFor(ids)) * 8 / 7;
  if (needs > call.patience) return TakesTooLong(call, needs);
  if (places_.empty()) since_ = now;
  call.place =
      std::make_shared<LinePlace>(this, call.method(), now + call.patience, call.missing());
  places_.push_back(call.place);
  return std::nullopt;
}

bool WaitingLine::Finish(IssueCall& call) {
  if (call.place == nullptr || call.place->line != this) return false;
  const std::lock_guard lock(mutex_);
  if (call.place->missing > 0) return false;
  for (const IdRun& run : call.place->runs.runs()) call.Add(run);
  return true;
}

Micros WaitingLine::WaitOf(const IssueCall& call) const {
  if (call.place == nullptr || call.place->line != this) return Micros(0);
  const std::lock_guard lock(mutex_);
  Micros wait{0};
  for (const std::weak_ptr<LinePlace>& weak : places_) {
    const auto place = weak.lock();
    if (place == call.place || wait >= kAskAgainMax) break;
    if (place != nullptr) wait += TimeFor(place->missing);
  }
  return std::min(wait, kAskAgainMax);
}

size_t WaitingLine::length() const {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(
      std::count_if(places_.begin(), places_.end(),
                    [](const std::weak_ptr<LinePlace>& place) { return !place.expired(); }));
}

}  // namespace firn
