// Copies of a simulated machine: mirrored, frozen as a snapshot, and resumed in parallel.

#include <algorithm>

#include "tests/sim/sim_host.h"
#include "tests/sim/violation.h"

namespace firn {

bool SimHost::has_copy() const {
  return copy_ != nullptr && copy_->process_ != nullptr && tenure() != nullptr &&
         !process_->stale_time.has_value();
}

// Starts a process in the same state as the first one.
void SimHost::Follow(const SimHost& first, uint64_t seed) {
  disk_ = first.disk_;
  clock_ = first.clock_;
  process_ = std::make_unique<Process>(*this, seed, first.process_->pid, nullptr);
  first.process_->mirror.Lead(process_->mirror);
}

// Returns the host that mirrors this one, with the same clock and disk faults.
SimHost* SimHost::Follower() {
  if (copy_ == nullptr || copy_->process_ == nullptr) return nullptr;
  copy_->clock_ = clock_;
  copy_->disk_.writes_fail = disk_.writes_fail;
  copy_->disk_.removal_fails = disk_.removal_fails;
  return copy_;
}

void SimHost::ForgetCopy() {
  if (copy_ != nullptr) copy_->process_.reset();
}

SimHost& SimHost::TakeSnapshot() {
  SimHost& copy = *Follower();
  const Tenure* const held = copy.process_->keeper.tenure();
  const Tenure::Terms& terms = tenure()->terms();
  if (held == nullptr || held->terms().nonce != terms.nonce || held->limit() != tenure()->limit()) {
    Die("a copy that differs");
  }
  Trace("is copied");
  process_->mirror.Part();
  copy_ = nullptr;
  copy.highest_bound_ = highest_bound_;
  copy.led_ = led_;
  copy.process_->limit = held->limit();
  copy.process_->user.CountAs(process_->user.number());
  copy.process_->checked_claim = process_->checked_claim;
  // Both copies know the words that were written before the snapshot.
  copy.doubt_ = Doubt{terms.nonce, terms.word, terms.pending_word, terms.bound};
  // A copy that detects its generation drops its claims, so the original need not doubt its own.
  if (!shared_.generations) doubt_ = copy.doubt_;
  return copy;
}

void SimHost::Resume(Milliseconds slept, BootMs clock_right_at) {
  clock_.Sleep(slept);
  clock_.SetRightAt(clock_right_at);
  if (shared_.mutant != Mutant::kCopiesDrawAlike) {
    process_->honest = SeededEntropy(shared_.dice.Next());
  }
  if (shared_.generations) disk_.identity.boot_id += ".copy";
  process_->link = NewLink(*this);
  process_->mirror.GoOn(*process_->link);
  Trace("is resumed as a copy");
}

// Checks invariant 11: a copy must not mistake later writes of the other copy for its own. A copy
// that has written continues, and from then on no other copy issues the same ids.
void SimHost::LookForTwin(const Tenure& tenure) {
  if (!doubt_.has_value()) return;
  const Tenure::Terms& terms = tenure.terms();
  const ClaimBook::Last* const last = shared_.book.LastOf(terms.machine);
  const bool others = last != nullptr && last->nonce == terms.nonce &&
                      last->version == terms.version && last->host != index_ &&
                      !doubt_->BothKnow(last->word);
  Require(!others, 11, "a copy continues with what the other one has written");
  // The grant file may be one write behind: both copies know a write that was in flight then.
  const bool wrote = !doubt_->BothKnow(terms.word) && !doubt_->BothKnow(terms.pending_word);
  if (terms.nonce != doubt_->nonce || wrote) return doubt_.reset();
  // The write that was in flight when the machine was copied has raised the bound.
  if (terms.word == doubt_->pending_word) doubt_->bound = std::max(doubt_->bound, terms.bound);
}

}  // namespace firn
