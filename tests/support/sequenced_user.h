#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "common/id/id_clock.h"
#include "common/sequence/sequencer.h"
#include "common/time/clock.h"
#include "registry/claim/claim_user.h"

namespace firn {

// A user of a claim that works like a server's issuing core, with the product's sequencer and id
// clock, in virtual time. Owned by one thread.
class SequencedUser : public ClaimUser {
 public:
  // `clock` must outlive the object. `seed` varies where sequences start.
  SequencedUser(const Clock& clock, SequencerOptions options, uint64_t seed,
                IdClockOptions id_clock = {})
      : clock_(clock), options_(options), seed_(seed), id_clock_(id_clock) {}

  void Adopt(std::shared_ptr<Claim> claim) override {
    if (sequencer_ != nullptr && !sequencer_->closed()) Die("adopted twice without a close");
    claim_ = std::move(claim);
    id_clock_.RaiseTo(claim_->layout().StartOf(claim_->first_tick()), clock_.Read());
    cell_ = std::make_unique<std::atomic<uint64_t>>(0);
    sequencer_ = MakeSequencer(options_, claim_, *cell_, ++seed_);
  }
  WallMs SetIdClock(WallMs time, Now now) override {
    id_clock_.Restart(time, now, [](WallMs) {});
    return id_clock_.Last();
  }
  Tick Last() const override { return sequencer_->Last(); }
  Tick Close() override { return sequencer_->Close(); }

  // The id clock after a fresh reading of both clocks.
  WallMs Time() { return id_clock_.Advance(clock_.Read()); }

  // Takes up to `want` ids' positions now; kClosed without a claim.
  Step Take(uint64_t want) {
    if (sequencer_ == nullptr) return {};
    const Tick now = claim_->layout().TickAt(Time());
    if (id_clock_.Stopped()) return {Step::Kind::kLater, now};
    return sequencer_->Take(now, want);
  }

  // Take for a tick that was computed earlier, by a thread that was paused since.
  Step TakeAt(Tick tick, uint64_t want) { return sequencer_->Take(tick, want); }

  bool has_claim() const { return sequencer_ != nullptr && !sequencer_->closed(); }
  const Claim& claim() const { return *claim_; }
  IdClock& id_clock() { return id_clock_; }

 private:
  const Clock& clock_;
  const SequencerOptions options_;
  uint64_t seed_;
  IdClock id_clock_;
  std::shared_ptr<Claim> claim_;
  std::unique_ptr<std::atomic<uint64_t>> cell_;  // outlives the sequencer
  std::unique_ptr<Sequencer> sequencer_;
};

}  // namespace firn
