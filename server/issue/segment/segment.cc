#include "server/issue/segment/segment.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

constexpr int kSwitchesMax = 64;  // in one call; more ranges than that, and it has to wait

// How many numbers are left when the next range is fetched.
int64_t MarkOf(const Range& range, int64_t prefetch_at) {
  const int64_t used = range.size() / 100 * prefetch_at + range.size() % 100 * prefetch_at / 100;
  return std::max<int64_t>(1, range.size() - used);
}

}  // namespace

Result<std::shared_ptr<Segment>> Segment::Make(const TagDefinition& tag, RangedParts parts) {
  auto cells = std::make_unique<ForkCells>();
  FIRN_ASSIGN(ForkCells::Cell * numbers, cells->Take());
  return std::shared_ptr<Segment>(new Segment(tag, std::move(parts), std::move(cells), *numbers));
}

Segment::Segment(const TagDefinition& tag, RangedParts parts, std::unique_ptr<ForkCells> cells,
                 ForkCells::Cell& numbers)
    : parts_(std::move(parts)),
      cells_(std::move(cells)),
      cursor_(numbers, *this),
      tag_(std::make_shared<const TagDefinition>(tag)),
      policy_(tag),
      gate_(parts_.entropy) {}

Segment::~Segment() = default;

Verdict Segment::Issue(IssueCall& call) {
  if (sentinel_.InChild()) return call.Refuse(ClosedHere());
  if (call.runs().empty()) call.drops = drops_.load(std::memory_order_acquire);
  for (int switches = 0;; ++switches) {
    if (IsStale(call)) return RefuseStale(call);
    const Range taken = cursor_.TakeUpTo(call.missing());
    if (!taken.empty()) {
      call.Add({taken.begin, taken.size(), 1});
      if (call.missing() == 0) return Verdict::kIssued;
    }
    const BootMs now = parts_.clock.Boot();
    Lock lock(mutex_);
    if (closed_) return call.Refuse(ClosedLocked());
    if (switches < kSwitchesMax && SwitchLocked(now)) continue;
    asked_ = true;
    if (!next_ && gate_.open(now)) {
      NoteShortageLocked(call);
      Fetch(std::move(lock), now);
      lock = Lock(mutex_);
      return gate_.Answer(call, now);
    }
    const Verdict verdict = gate_.Answer(call, now);
    if (verdict == Verdict::kWait) NoteShortageLocked(call);
    return verdict;
  }
}

std::optional<Refusal> Segment::WhyNot() const {
  if (sentinel_.InChild()) return ClosedHere();
  const Lock lock(mutex_);
  if (closed_) return ClosedHere();
  if (SupplyLocked() > 0) return std::nullopt;
  return gate_.WhyNot(parts_.clock.Boot());
}

// Rule 6, for what a call has got.
bool Segment::IsStale(const IssueCall& call) const {
  return !call.runs().empty() && call.drops != drops_.load(std::memory_order_acquire);
}

Verdict Segment::RefuseStale(IssueCall& call) {
  const Lock lock(mutex_);
  counts_.wasted += call.runs().count();
  return call.Refuse(Dropped());
}

void Segment::OnLow() noexcept {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (!closed_ && !next_ && gate_.open(now)) Fetch(std::move(lock), now);
}

// True when there are numbers in the current range, which may be the next one from now on.
bool Segment::SwitchLocked(BootMs now) {
  if (cursor_.left() > 0) return true;
  cursor_.Shut();
  if (!next_) return false;
  if (loaded_at_) policy_.UsedUpIn(now - *loaded_at_);
  mark_ = MarkOf(*next_, tag_->prefetch_at);
  loaded_at_ = now;
  cursor_.Load(*std::exchange(next_, std::nullopt), mark_);
  return true;
}

// Counts each call that waits once for each range that could have served it.
void Segment::NoteShortageLocked(IssueCall& call) {
  if (call.ticket > fetches_) return;
  call.ticket = fetches_ + 1;
  shortage_ = std::min(shortage_, kRangeEnd - call.missing()) + call.missing();
}

void Segment::Fetch(Lock lock, BootMs now) {
  gate_.Began(now);
  ++fetches_;
  asked_drops_ = drops_;
  const int64_t size =
      std::min(policy_.SizeFor(std::exchange(shortage_, 0)), RangeCursor::kSizeMax);
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.Take(*tag, size, [weak = weak_from_this()](Result<Range> taken) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild()) self->OnTaken(taken);
  });
}

void Segment::OnTaken(const Result<Range>& taken) {
  const BootMs now = parts_.clock.Boot();
  Lock lock(mutex_);
  if (const Status kept = KeepLocked(taken); kept.ok()) {
    gate_.Succeeded();
    if (!closed_) SwitchLocked(now);
  } else {
    ++counts_.failures;
    gate_.Failed(kept, now);
  }
  if (stopped_) return GiveBack(std::move(lock));
  lock.unlock();
  if (parts_.news) parts_.news();
}

Status Segment::KeepLocked(const Result<Range>& taken) {
  if (!taken.ok()) return taken.status();
  const Range range = taken.value();
  if (range.empty() || range.size() > RangeCursor::kSizeMax || range.begin < end_) {
    return Corrupt("the source gave numbers that had been given before");
  }
  end_ = range.end;
  taken_ += range.size();
  ++counts_.ranges;
  if (asked_drops_ != drops_) {
    counts_.wasted += range.size();
    return Corrupt("the tag's numbers were dropped meanwhile");
  }
  next_ = range;
  return {};
}

void Segment::Tick(BootMs now) {
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  pace_.Note(taken_ - counts_.wasted - SupplyLocked(), now);
  if (!closed_ && WantsNextLocked() && gate_.open(now)) Fetch(std::move(lock), now);
}

bool Segment::WantsNextLocked() const { return asked_ && !next_ && cursor_.left() < mark_; }

void Segment::Adjust(const TagDefinition& tag) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  const bool raised = tag.start.value_or(1) > tag_->start.value_or(1);
  if (raised && !closed_) TrimLocked(*tag.start, now);
  tag_ = std::make_shared<const TagDefinition>(tag);
  policy_.Adjust(tag);
}

// Somebody else may have given what lies below the tag's new start.
void Segment::TrimLocked(int64_t start, BootMs now) {
  const auto trimmed = [this, start](Range range) {
    const int64_t begin = std::clamp(start, range.begin, range.end);
    counts_.wasted += begin - range.begin;
    return Range{begin, range.end};
  };
  const Range current = trimmed(cursor_.Unload());
  const Range next = trimmed(next_.value_or(Range{}));
  next_ = next.empty() ? std::nullopt : std::optional(next);
  if (!current.empty()) {
    mark_ = std::min(mark_, current.size());
    cursor_.Load(current, mark_);
  }
  drops_.fetch_add(1, std::memory_order_release);
  SwitchLocked(now);
}

void Segment::Drop(const std::string& why) {
  const BootMs now = parts_.clock.Boot();
  const Lock lock(mutex_);
  const Range current = cursor_.Unload();
  const Range next = std::exchange(next_, std::nullopt).value_or(Range{});
  const Range rest = std::exchange(rest_, Range{});
  counts_.wasted += current.size() + next.size() + rest.size();
  loaded_at_.reset();
  drops_.fetch_add(1, std::memory_order_release);
  if (!gate_.in_flight()) gate_.Failed(Corrupt(why), now);
}

void Segment::Close() {
  if (sentinel_.InChild()) return;
  const Lock lock(mutex_);
  if (std::exchange(closed_, true)) return;
  rest_ = cursor_.Unload();
}

void Segment::Stop() {
  Close();
  if (sentinel_.InChild()) return;
  Lock lock(mutex_);
  if (std::exchange(stopped_, true) || gate_.in_flight()) return;
  GiveBack(std::move(lock));
}

void Segment::Abandon() {
  if (sentinel_.InChild()) return;
  {
    const Lock lock(mutex_);
    abandoned_ = true;
  }
  Stop();
}

// Rules 5 and 7. Once, when nothing is in flight any more.
void Segment::GiveBack(Lock lock) {
  Range tail = abandoned_ ? Range{} : next_.value_or(rest_);
  if (!tail.empty() && next_ && !rest_.empty() && rest_.end == next_->begin) {
    tail.begin = rest_.begin;
  }
  counts_.wasted += SupplyLocked() - tail.size();
  next_.reset();
  rest_ = {};
  if (tail.empty()) return;
  giving_back_ = true;
  const std::shared_ptr<const TagDefinition> tag = tag_;
  lock.unlock();
  parts_.source.GiveBack(*tag, tail, [weak = weak_from_this(), tail](const Status& status) {
    if (const auto self = weak.lock(); self && !self->sentinel_.InChild())
      self->OnGivenBack(status, tail);
  });
}

void Segment::OnGivenBack(const Status& status, Range tail) {
  const Lock lock(mutex_);
  giving_back_ = false;
  if (!status.ok()) counts_.wasted += tail.size();
}

bool Segment::settled() const {
  const Lock lock(mutex_);
  return stopped_ && !gate_.in_flight() && !giving_back_;
}

int64_t Segment::SupplyLocked() const {
  return cursor_.left() + rest_.size() + next_.value_or(Range{}).size();
}

SegmentStatus Segment::status() const {
  const Lock lock(mutex_);
  SegmentStatus status = counts_;
  status.supply = SupplyLocked();
  status.step = policy_.step();
  status.wasted += cursor_.lost();
  status.per_second = pace_.per_second();
  status.supply_seconds = pace_.SecondsFor(status.supply);
  if (!gate_.trouble().ok()) status.trouble = gate_.trouble().ToString();
  return status;
}

}  // namespace firn
