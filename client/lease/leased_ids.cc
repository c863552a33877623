#include "client/lease/leased_ids.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"

namespace firn {

uint64_t LeasedIds::DrawVersion() {
  static std::atomic<uint64_t> drawn{0};
  return drawn.fetch_add(1, std::memory_order_relaxed) + 1;
}

// Stores the current lease in the thread's variables. Requires mutex_, so that version and lease
// match. After the thread's variables are destroyed, as in the destructor of a static variable,
// each call takes the slow path.
void LeasedIds::UseInThread() const {
  static constinit thread_local bool ended = false;
  struct Owned {
    Owned() = default;
    ~Owned() {
      used_ = {};
      ended = true;
    }
    std::array<std::shared_ptr<Holding>, kUsedMax> held{};
  };
  if (ended) return;
  static thread_local Owned owned;
  used_[place_] = {version_.load(std::memory_order_relaxed), current_.get()};
  owned.held[place_] = current_;
}

LeasedIds::LeasedIds(const Clock& clock, Entropy& entropy, bool use_cycles,
                     std::function<void()> on_jump)
    : clock_(clock),
      entropy_(entropy),
      use_cycles_(use_cycles),
      on_jump_(std::move(on_jump)),
      id_clock_({.jump_hold = std::nullopt}),
      version_(DrawVersion()),
      place_(version_.load(std::memory_order_relaxed) % kUsedMax),
      why_not_(Unavailable("no server has granted a lease yet")) {}

Status LeasedIds::Adopt(const LeaseGrant& terms) {
  FIRN_TRY(CheckTerms(terms));
  if (sentinel_.InChild()) return Unavailable("this process is a forked child");
  const std::lock_guard lock(mutex_);
  if (ticks_ && !(ticks_->layout() == terms.layout)) {
    return Invalid(Cat("a lease of layout ", terms.layout.text(), " after one of layout ",
                       ticks_->layout().text()));
  }
  const WallMs end = terms.layout.StartOf(terms.until);
  if (Advance() >= end && clock_.Wall() >= end) {
    return Invalid(Cat("a lease that ended at ", FormatRfc3339(end)));
  }
  FIRN_ASSIGN(ForkCells::Cell * cell, TakeCell());

  CloseCurrent();
  const Tick first = std::max(terms.from, last_used_ + 1);
  if (!ticks_) ticks_.emplace(terms.layout, id_clock_, clock_, use_cycles_);
  MoveClockTo(first, terms.until);
  auto claim = std::make_shared<Claim>(terms.layout, terms.machine, terms.layout.StartOf(first));
  claim->ExtendTo(terms.layout.StartOf(terms.until));
  current_ = std::make_shared<Holding>(terms, std::move(claim), *ticks_, *cell, entropy_.Next());
  cell_ = cell;
  version_.store(DrawVersion(), std::memory_order_release);
  return {};
}

Result<ForkCells::Cell*> LeasedIds::TakeCell() {
  const auto free =
      std::ranges::find_if(retired_, [](const Retired& one) { return one.held.expired(); });
  if (free == retired_.end()) return cells_.Take();
  ForkCells::Cell* cell = free->cell;
  retired_.erase(free);
  return cell;
}

// Sets the id clock back to the wall clock if it has passed the interval: it may have followed a
// wrong wall clock, or the lease of a server whose ids are ahead. Ids still rise, because none is
// below `first`.
void LeasedIds::MoveClockTo(Tick first, Tick until) {
  const Now now = clock_.Read();
  const Layout& layout = ticks_->layout();
  const WallMs time = std::max(now.wall, layout.StartOf(first));
  if (id_clock_.Last() >= layout.StartOf(until) && time < layout.StartOf(until)) {
    ticks_->Restart(time, now);
  }
  ticks_->RaiseTo(first);
}

void LeasedIds::CloseCurrent() {
  if (current_ == nullptr) return;
  version_.store(DrawVersion(), std::memory_order_relaxed);  // Close publishes it
  last_used_ = current_->sequencer.Close();
  retired_.push_back({current_, cell_});
  current_.reset();
}

void LeasedIds::ExtendTo(Tick until) {
  if (sentinel_.InChild()) return;
  const std::lock_guard lock(mutex_);
  if (current_ == nullptr) return;
  Claim& claim = *current_->claim;
  claim.ExtendTo(claim.layout().StartOf(until));
  MoveClockTo(std::max(claim.first_tick(), current_->sequencer.Last()), claim.end_tick());
}

void LeasedIds::RaiseClockTo(WallMs time) {
  if (ticks_) ticks_->RaiseTo(time);
}

void LeasedIds::Close(Status why) {
  if (sentinel_.InChild()) return;
  const std::lock_guard lock(mutex_);
  CloseCurrent();
  why_not_ = std::move(why);
}

WallMs LeasedIds::Advance() {
  if (ticks_) ticks_->Refresh();
  return ticks_ ? id_clock_.Last() : clock_.Wall();
}

Result<int64_t> LeasedIds::TryNextSlowly(std::chrono::microseconds* wait) {
  *wait = std::chrono::microseconds(0);
  if (sentinel_.InChild()) {
    return Unavailable("this process is a forked child; create another generator");
  }
  const std::lock_guard lock(mutex_);  // waits while one lease replaces another
  if (current_ == nullptr) return why_not_;
  UseInThread();
  const Tick now = ticks_->Refresh();
  if (now == TickSource::kStopped) {
    const uint64_t jump = id_clock_.Report().steps_forward;
    if (std::exchange(jump_told_, jump) != jump) on_jump_();
    return Unavailable(Cat("the wall clock has jumped forward by ",
                           -id_clock_.Skew().count() / 1'000,
                           " s, and no server has confirmed it"));
  }
  const Step step = current_->sequencer.Take(now, 1);
  if (step.kind == Step::Kind::kTaken) {
    return current_->IdAt(current_->shape.Position(step.tick, step.first));
  }
  if (step.kind == Step::Kind::kLater) *wait = ticks_->Until(step.tick);
  return WhyNot(*current_, step);
}

Status LeasedIds::WhyNot(const Holding& held, const Step& step) const {
  const Layout& layout = held.claim->layout();
  switch (step.kind) {
    case Step::Kind::kLater:
      return Unavailable("the sequence is used up until the next tick");
    case Step::Kind::kLayoutEnds:
      return Exhausted(Cat("by this machine's clock, the time field of layout ", layout.text(),
                           " has run out; correct the clock"));
    case Step::Kind::kClaimEnds:
      return Unavailable(Cat("the lease of machine id ", held.claim->machine().value(),
                             " ended at ", FormatRfc3339(layout.StartOf(held.claim->end_tick())),
                             ", and no server has extended it"));
    case Step::Kind::kTaken:
    case Step::Kind::kClosed:
      break;
  }
  return why_not_;
}

std::optional<LeasedIds::Interval> LeasedIds::interval() const {
  if (sentinel_.InChild()) return std::nullopt;
  const std::lock_guard lock(mutex_);
  if (current_ == nullptr) return std::nullopt;
  const Claim& claim = *current_->claim;
  return Interval{claim.machine(), claim.layout().StartOf(claim.first_tick()),
                  claim.layout().StartOf(claim.end_tick())};
}

}  // namespace firn
