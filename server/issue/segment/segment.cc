#include "server/issue/segment/segment.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

constexpr int kSwitchesMax = 64;  // per call; a call that needs more ranges has to wait

}  // namespace

Result<std::shared_ptr<Segment>> Segment::Make(const TagDefinition& tag, RangedParts parts) {
  auto cells = std::make_unique<ForkCells>();
  FIRN_ASSIGN(ForkCells::Cell * numbers, cells->Take());
  return std::shared_ptr<Segment>(new Segment(tag, std::move(parts), std::move(cells), *numbers));
}

Segment::Segment(const TagDefinition& tag, RangedParts parts, std::unique_ptr<ForkCells> cells,
                 ForkCells::Cell& numbers)
    : RangedStrategy(tag, std::move(parts)), cells_(std::move(cells)), cursor_(numbers, *this) {}

Verdict Segment::Issue(IssueCall& call) {
  if (sentinel_.InChild()) return call.Refuse(ClosedHere());
  for (int switches = 0;; ++switches) {
    if (IsStale(call)) return RefuseStale(call);
    Give(cursor_.TakeUpTo(call.missing()), call);
    if (call.missing() == 0) return Verdict::kIssued;
    const BootMs now = parts_.clock.Boot();
    Lock lock(mutex_);
    if (closed_) return call.Refuse(ClosedNowLocked());
    if (switches < kSwitchesMax && SwitchLocked(now)) continue;
    asked_ = true;
    if (!next_ && gate_.open(now)) {
      policy_.Waits(call);
      Fetch(std::move(lock), now);
      lock = Lock(mutex_);
      return gate_.Answer(call, now);
    }
    const Verdict verdict = gate_.Answer(call, now);
    if (verdict == Verdict::kWait) policy_.Waits(call);
    return verdict;
  }
}

Range Segment::TakeUpTo(int64_t count, Status* why) {
  if (sentinel_.InChild()) return {};
  for (;;) {
    const Range taken = cursor_.TakeUpTo(count);
    if (!taken.empty()) return taken;
    const BootMs now = parts_.clock.Boot();
    Lock lock(mutex_);
    if (closed_) return {};
    if (SwitchLocked(now)) continue;
    asked_ = true;
    policy_.Needs(count);
    if (!gate_.near(now)) *why = gate_.trouble();
    if (!next_ && gate_.open(now)) Fetch(std::move(lock), now);
    return {};
  }
}

void Segment::Give(Range taken, IssueCall& call) {
  if (taken.empty()) return;
  if (call.request().form != Form::kOneRun || taken.size() == call.missing()) {
    return call.Add({taken.begin, taken.size(), 1});
  }
  const Lock lock(mutex_);
  counts_.wasted += taken.size();
}

int64_t Segment::one_run_max() const {
  const Lock lock(mutex_);
  return tag_->step;
}

std::optional<Refusal> Segment::WhyNotLocked(BootMs now) const {
  return SupplyLocked() > 0 ? std::nullopt : gate_.WhyNot(now);
}

void Segment::OnLow() noexcept {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (!closed_ && !next_ && gate_.open(now)) Fetch(std::move(lock), now);
}

bool Segment::TickLocked(BootMs) { return asked_ && !next_ && cursor_.left() < mark_; }

// Replaces the current range by the next one if it is used up. Returns true if there are numbers.
bool Segment::SwitchLocked(BootMs now) {
  if (cursor_.left() > 0) return true;
  cursor_.Shut();
  if (!next_) return false;
  if (loaded_at_) policy_.UsedUpIn(now - *loaded_at_);
  mark_ = policy_.MarkOf(*next_);
  loaded_at_ = now;
  cursor_.Load(*std::exchange(next_, std::nullopt), mark_);
  return true;
}

Status Segment::KeepLocked(Range range, BootMs now) {
  next_ = range;
  if (!closed_) SwitchLocked(now);
  return {};
}

int64_t Segment::TrimLocked(int64_t start, BootMs now) {
  int64_t below = 0;
  const auto trimmed = [start, &below](Range range) {
    const int64_t begin = std::clamp(start, range.begin, range.end);
    below += begin - range.begin;
    return Range{begin, range.end};
  };
  const Range current = trimmed(cursor_.Unload());
  const Range next = trimmed(next_.value_or(Range{}));
  next_ = next.empty() ? std::nullopt : std::optional(next);
  if (!current.empty()) {
    mark_ = std::min(mark_, current.size());
    cursor_.Load(current, mark_);
  }
  SwitchLocked(now);
  return below;
}

std::vector<Range> Segment::EmptyLocked() {
  loaded_at_.reset();
  const Range current = closed_ ? std::exchange(rest_, Range{}) : cursor_.Unload();
  return {current, std::exchange(next_, std::nullopt).value_or(Range{})};
}

int64_t Segment::NextLocked() const {
  if (cursor_.left() > 0) return cursor_.next();
  return next_ ? next_->begin : end_;
}

int64_t Segment::SupplyLocked() const {
  return cursor_.left() + rest_.size() + next_.value_or(Range{}).size();
}

}  // namespace firn
