#include "server/issue/segment/ranged_strategy.h"

#include <utility>

namespace firn {
namespace {

// Returns the part of these ascending ranges that can be given back: the last range and those
// adjacent to it.
Range TailOf(const std::vector<Range>& ranges) {
  Range tail;
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range) {
    if (tail.empty()) {
      tail = *range;
    } else if (!range->empty() && range->end == tail.begin) {
      tail.begin = range->begin;
    }
  }
  return tail;
}

int64_t CountOf(const std::vector<Range>& ranges) {
  int64_t count = 0;
  for (const Range& range : ranges) count += range.size();
  return count;
}

}  // namespace

RangedStrategy::RangedStrategy(const TagDefinition& tag, RangedParts parts)
    : parts_(std::move(parts)),
      name_(tag.name),
      tag_(std::make_shared<const TagDefinition>(tag)),
      policy_(tag),
      gate_(parts_.entropy) {}

// --- calls ---------------------------------------------------------------------------------------

bool RangedStrategy::IsStale(IssueCall& call) const {
  const uint64_t drops = drops_.load(std::memory_order_acquire);
  if (call.runs().empty()) call.drops = drops;
  return call.drops != drops;
}

Verdict RangedStrategy::RefuseStale(IssueCall& call) {
  return call.Refuse({Reason::kStoreDown, "the numbers reserved for this call were dropped",
                      static_cast<int32_t>(FetchGate::kNear.count()), true});
}

void RangedStrategy::TakeBack(const IssueCall& call) {
  if (sentinel_.InChild()) return;
  const Lock lock(mutex_);
  ForgetLocked(call.ticket);
  const int64_t count = call.request().count - call.missing();
  const bool returns = count > 0 && call.missing() > 0 && call.drops == drops_;
  counts_.wasted += returns ? TakeBackLocked(call.runs()) : count;
}

int64_t RangedStrategy::NextAtLeast() const {
  if (sentinel_.InChild()) return 0;
  const Lock lock(mutex_);
  return NextLocked();
}

std::optional<Refusal> RangedStrategy::WhyNot() const {
  if (sentinel_.InChild()) return ClosedHere();
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  return closed_ ? std::optional(ClosedNowLocked()) : WhyNotLocked(now);
}

// --- requests to the source ----------------------------------------------------------------------

bool RangedStrategy::Tick(BootMs now) {
  if (sentinel_.InChild()) return false;
  Lock lock(mutex_);
  pace_.Note(taken_ - counts_.wasted - SupplyLocked(), now);
  const bool wants = TickLocked(now) && !closed_;
  const bool soon = wants || gate_.in_flight() || !gate_.trouble().ok() || !IsIdleLocked();
  if (wants && gate_.open(now)) Fetch(std::move(lock), now);
  return soon;
}

void RangedStrategy::Fetch(Lock lock, BootMs now) {
  const int64_t size = AskLocked();
  if (size == 0) return;
  gate_.Began(now);
  asked_drops_ = drops_;
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.Take(*tag, size, [weak = weak_from_this()](const Result<Range>& taken) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild()) self->OnTaken(taken);
  });
}

void RangedStrategy::OnTaken(const Result<Range>& taken) {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  Status kept = taken.ok() ? TakeInLocked(*taken, now) : taken.status();
  if (!kept.ok()) {
    ++counts_.failures;
    kept = FailedLocked(std::move(kept), now);
  }
  const bool is_unwanted = std::exchange(handed_over_, false);
  if (kept.ok() || is_unwanted) {
    gate_.Succeeded();
  } else {
    gate_.Failed(std::move(kept), now);
  }
  if (stopped_) return GiveBack(std::move(lock));
  if (!closed_ && IsUrgentLocked() && gate_.open(now)) {
    Fetch(std::move(lock), now);
  } else {
    lock.unlock();
  }
  if (parts_.news) parts_.news();
}

// Rules 2 and 3.
Status RangedStrategy::TakeInLocked(Range range, BootMs now) {
  if (range.empty() || range.begin < end_) {
    return Corrupt("the source gave numbers that had been given before");
  }
  if (!IsRange(range)) return Corrupt("the source returned a range that is invalid for this tag");
  end_ = range.end;
  taken_ += range.size();
  ++counts_.ranges;
  if (asked_drops_ != drops_) {
    counts_.wasted += range.size();
    if (handed_over_) return {};
    return Corrupt("the tag's numbers were dropped meanwhile");
  }
  return KeepLocked(range, now);
}

// --- changes of the tag -------------------------------------------------------------------------

// Drops numbers below the new start, because another server may have issued them.
void RangedStrategy::Adjust(const TagDefinition& tag) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  const int64_t start = tag.start.value_or(1);
  if (start > tag_->start.value_or(1) && !closed_) {
    counts_.wasted += TrimLocked(start, now);
    ++drops_;
  }
  tag_ = std::make_shared<const TagDefinition>(tag);
  policy_.Adjust(tag);
}

void RangedStrategy::Drop(const std::string& why) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  counts_.wasted += CountOf(EmptyLocked());
  ++drops_;
  if (!gate_.in_flight()) gate_.Failed(Corrupt(why), now);
}

void RangedStrategy::HandOver() {
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  if (closed_) return;
  ++drops_;
  if (!gate_.in_flight()) {
    gate_.Succeeded();
    return GiveBack(std::move(lock));
  }
  handed_over_ = true;
  counts_.wasted += CountOf(EmptyLocked());
}

// --- its end -------------------------------------------------------------------------------------

void RangedStrategy::Close() {
  if (sentinel_.InChild()) return;
  const Lock lock(mutex_);
  if (!std::exchange(closed_, true)) CloseLocked();
}

void RangedStrategy::Stop() {
  Close();
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  if (std::exchange(stopped_, true) || gate_.in_flight()) return;
  GiveBack(std::move(lock));
}

void RangedStrategy::Abandon() {
  if (sentinel_.InChild()) return;
  {
    const Lock lock(mutex_);
    abandoned_ = true;
    ++drops_;  // marks calls as stale whose ids a plugin processes in parts: they have the old form
  }
  Stop();
}

// Rules 4 and 5. Called once nothing is in flight. No call has used a number of the tail, so the
// source may return it again.
void RangedStrategy::GiveBack(Lock lock) {
  const std::vector<Range> left = EmptyLocked();
  const Range tail = abandoned_ ? Range{} : TailOf(left);
  counts_.wasted += CountOf(left) - tail.size();
  if (tail.empty()) return;
  giving_back_ = true;
  end_ = tail.begin;
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.GiveBack(*tag, tail, [weak = weak_from_this(), tail](const Status& status) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild())
      self->OnGivenBack(status, tail);
  });
}

void RangedStrategy::OnGivenBack(const Status& status, Range tail) {
  const Lock lock(mutex_);
  giving_back_ = false;
  if (!status.ok()) counts_.wasted += tail.size();
}

bool RangedStrategy::settled() const {
  const Lock lock(mutex_);
  return stopped_ && !gate_.in_flight() && !giving_back_;
}

SegmentStatus RangedStrategy::status() const {
  const Lock lock(mutex_);
  SegmentStatus status = counts_;
  status.supply = SupplyLocked();
  status.step = policy_.step();
  status.per_second = pace_.per_second();
  status.supply_seconds = pace_.SecondsFor(status.supply);
  if (!gate_.trouble().ok()) status.trouble = gate_.trouble().ToString();
  DescribeLocked(status);
  return status;
}

}  // namespace firn
