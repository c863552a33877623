#include "client/lease/leased_ids.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"

namespace firn {

LeasedIds::LeasedIds(const Clock& clock, Entropy& entropy, bool use_cycles)
    : clock_(clock),
      entropy_(entropy),
      use_cycles_(use_cycles),
      why_not_(Unavailable("no server has granted a lease yet")) {}

Status LeasedIds::Adopt(const LeaseGrant& terms) {
  FIRN_TRY(CheckTerms(terms));
  if (sentinel_.InChild()) return Unavailable("this process is a forked child");
  const std::lock_guard lock(mutex_);
  if (ticks_ && !(ticks_->layout() == terms.layout)) {
    return Invalid(Cat("a lease of layout ", terms.layout.text(), " after one of layout ",
                       ticks_->layout().text()));
  }
  if (holdings_.size() == kLeasesMax) return Exhausted("too many leases for one process");
  FIRN_ASSIGN(ForkCells::Cell * cell, cells_.Take());

  CloseCurrent();
  const Tick first = std::max(terms.from, last_used_ + 1);
  if (!ticks_) ticks_.emplace(terms.layout, id_clock_, clock_, use_cycles_);
  MoveClockTo(first, terms.until);
  auto claim = std::make_shared<Claim>(terms.layout, terms.machine, terms.layout.StartOf(first));
  claim->ExtendTo(terms.layout.StartOf(terms.until));
  holdings_.push_back(
      std::make_unique<Holding>(terms, std::move(claim), *ticks_, *cell, entropy_.Next()));
  current_.store(holdings_.back().get(), std::memory_order_release);
  return {};
}

// An id clock that has passed the interval, because it followed a wrong wall clock or the lease of
// a server whose ids are ahead, returns to the wall clock. Ids still never fall: none is below
// `first`.
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
  Holding* held = current_.load(std::memory_order_relaxed);
  if (held == nullptr) return;
  current_.store(nullptr, std::memory_order_relaxed);  // closing publishes it
  last_used_ = held->sequencer.Close();
}

void LeasedIds::ExtendTo(Tick until) {
  if (sentinel_.InChild()) return;
  const std::lock_guard lock(mutex_);
  Holding* held = current_.load(std::memory_order_relaxed);
  if (held == nullptr) return;
  held->claim->ExtendTo(held->claim->layout().StartOf(until));
  MoveClockTo(std::max(held->claim->first_tick(), held->sequencer.Last()), held->claim->end_tick());
}

void LeasedIds::RaiseClockTo(WallMs time) {
  if (ticks_) ticks_->RaiseTo(ticks_->layout().TickAt(time));
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
  Holding* held = current_.load(std::memory_order_relaxed);
  if (held == nullptr) return why_not_;
  const Step step = held->sequencer.Take(ticks_->Refresh(), 1);
  if (step.kind == Step::Kind::kTaken) {
    return held->IdAt(held->shape.Position(step.tick, step.first));
  }
  if (step.kind == Step::Kind::kLater) *wait = ticks_->Until(step.tick);
  return WhyNot(*held, step);
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
  const Holding* held = current_.load(std::memory_order_relaxed);
  if (held == nullptr) return std::nullopt;
  const Claim& claim = *held->claim;
  return Interval{claim.machine(), claim.layout().StartOf(claim.first_tick()),
                  claim.layout().StartOf(claim.end_tick())};
}

}  // namespace firn
