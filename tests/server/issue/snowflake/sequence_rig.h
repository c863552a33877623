#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "tests/server/issue/snowflake/sequence_suite.h"

namespace firn {

// A sequencer under a claim, and an oracle that checks every number. Time is an argument.
class SequenceRig {
 public:
  static constexpr Tick kFirst{1000};

  // Granted are the ticks from kFirst to `end`; 8 numbers per tick unless `layout` says otherwise.
  explicit SequenceRig(const SequencerMaker& maker, Tick end = Tick(100'000),
                       SequenceStart start = SequenceStart::kZero,
                       const Layout& layout = SmallLayout())
      : layout_(layout),
        claim_(std::make_shared<Claim>(layout, MachineId(5), layout.StartOf(kFirst))) {
    claim_->ExtendTo(layout.StartOf(end));
    sequencer_ = maker(claim_, start, *cells_.Take().value());
  }

  static Layout SmallLayout() { return *Layout::Parse("time:41 machine:10 sequence:3"); }

  // Takes at `now`; the first fault of a number is kept for fault().
  Step Take(Tick now, uint64_t want = 1) {
    const Step step = sequencer_->Take(now, want);
    if (step.kind == Step::Kind::kTaken) Watch(step, now, want);
    return step;
  }

  // Takes one after another at `now` until a take fails. Returns how many there were.
  uint64_t TakeAll(Tick now) {
    uint64_t count = 0;
    while (count <= layout_.ids_per_tick() && Take(now).kind == Step::Kind::kTaken) ++count;
    return count;
  }

  Tick Close() {
    const Tick last = sequencer_->Close();
    closed_ = true;
    return last;
  }

  Sequencer& sequencer() { return *sequencer_; }
  Claim& claim() { return *claim_; }
  const Layout& layout() const { return layout_; }

  // Returns the first fault, if any.
  std::optional<std::string> fault() const { return fault_; }

 private:
  void Watch(const Step& step, Tick now, uint64_t want) {
    newest_now_ = std::max(newest_now_, now);
    if (step.count < 1 || step.count > want) Fault("gave another number of ids than asked", step);
    if (step.first + step.count > layout_.ids_per_tick()) Fault("left its tick", step);
    if (step.tick > newest_now_) Fault("lent from the future", step);
    if (step.tick < claim_->first_tick()) Fault("began before the claim", step);
    if (step.tick >= claim_->end_tick()) Fault("went beyond the claim", step);
    if (step.tick > layout_.last_tick()) Fault("went beyond the layout", step);
    if (closed_) Fault("gave something when closed", step);
    for (uint64_t i = 0; i < step.count && i < layout_.ids_per_tick(); ++i) {
      const std::pair position(step.tick, step.first + i);
      if (!given_.insert(position).second) Fault("gave something twice", step);
      if (*given_.rbegin() != position) Fault("did not rise", step);
    }
  }

  void Fault(const char* what, const Step& step) {
    if (fault_) return;
    std::ostringstream text;
    text << what << ": " << step.count << " from " << step.first << " of " << step.tick;
    fault_ = text.str();
  }

  const Layout layout_;
  ForkCells cells_;
  std::shared_ptr<Claim> claim_;
  std::unique_ptr<Sequencer> sequencer_;
  std::set<std::pair<Tick, uint64_t>> given_;
  Tick newest_now_{0};
  bool closed_ = false;
  std::optional<std::string> fault_;
};

}  // namespace firn
