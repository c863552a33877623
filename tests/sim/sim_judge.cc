// The checks of a simulated host after each of its rounds.

#include <algorithm>

#include "tests/sim/sim_host.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

// Maximum lead of a clock that agrees with the registry's, including later drift.
constexpr Milliseconds kLeadMax{60'000};

// Maximum time ahead of the id clock for which a claim's holder may have issued ids.
constexpr Milliseconds kUsedAhead{3'000};

}  // namespace

// Checks invariants 2 to 4 of the claim after a round.
void SimHost::LookAtClaim() {
  const Tenure* const tenure = process_->keeper.tenure();
  highest_bound_ = std::max(highest_bound_, tenure->bound());
  process_->limit = tenure->limit();
  process_->excused = shared_.book.Excused(tenure->terms().nonce);
  LookForTwin(*tenure);
  if (!shared_.judging) return;
  const Nonce& nonce = tenure->terms().nonce;
  const ClaimBook::Entry* const entry = shared_.book.Find(nonce);
  Require(entry != nullptr && tenure->bound() <= entry->bound, 2,
          "a claim or bound that the registry never had");
  Require(tenure->limit() <= tenure->bound(), 2, "L lies beyond R");
  if (process_->keeper.has_file()) {
    const auto& permit = disk_.Permits();
    const bool on_file =
        permit.has_value() && permit->nonce == nonce && permit->limit >= tenure->limit();
    const bool nothing_yet = tenure->limit() == tenure->terms().base;
    Require(on_file || nothing_yet, 2, "L is not on file");
  }
  if (process_->checked_claim == process_->user.number()) return;
  process_->checked_claim = process_->user.number();
  process_->old_alarms = process_->alarms;
  JudgeNewClaim(*tenure, *entry);
}

void SimHost::JudgeNewClaim(const Tenure& tenure, const ClaimBook::Entry& entry) {
  const Tenure::Terms& terms = tenure.terms();
  const auto& permit = process_->start_permit;
  const bool offline = permit.has_value() && permit->nonce == terms.nonce;
  const WallMs base_min = offline ? permit->limit : entry.base_min;
  Require(terms.base >= base_min, 3, "a claim begins below ids of others");
  const firn::Tick first =
      std::max(tenure.claim()->first_tick(), options_.layout.FirstTickFrom(process_->excused));
  // A copy that was stopped before it was detected may resume the shared claim, so its ticks may be
  // used.
  Require(doubt_.has_value() ||
              shared_.oracle.IsFree(terms.machine, first, options_.layout.TickAt(terms.bound)),
          3, "a claim contains ticks that were already issued");
  const WallMs truth = shared_.clock.Wall();
  // A clock may be further ahead by the round-trip time of the answer with which it was compared.
  if (!offline) led_ = std::max(led_, shared_.clock.Boot() - process_->claims_since);
  Require(terms.base <=
              std::max({base_min, entry.base_reason, truth + led_ + clock_.crept() + kLeadMax}),
          10, "a claim begins far ahead for no reason");
  const WallMs from =
      std::max({terms.base, entry.base_reason, process_->user.time(), terms.ClusterTimeAt(truth)});
  const Milliseconds ahead = options_.probation + options_.restore_probation +
                             std::min(kClaimWindowFirst, options_.window) +
                             shared_.registry_clock.crept() + kBelievedOff;
  Require(offline || terms.bound <= from + ahead, 9,
          "the bound of a claim lies far ahead for no reason");
  led_ = std::max(led_, terms.base - truth);
}

// Checks the lead of the id clock. It may be ahead because a claim had to begin ahead, or because
// it followed steps of the wall clock.
void SimHost::JudgeIdClock(WallMs id_time) const {
  Require(!shared_.judging || id_time <= shared_.clock.Wall() + led_ + clock_.crept() + kLeadMax,
          10, "the id clock of a holder is far ahead for no reason");
}

// Checks the end of a claim with the bound `bound`.
void SimHost::JudgeEnd(const KeeperTime& now, WallMs bound) {
  if (!shared_.judging) return;
  Require(disk_.removal_fails || disk_.PermitsAStart() == nullptr, 4,
          "a claim that has ended is still permitted on file");
  const bool given_back = process_->keeper.state() != ClaimState::kSeeking;
  const bool told = process_->alarms > process_->old_alarms;
  Require(given_back || told || bound <= now.id_time + kUsedAhead, 11,
          "a claim was taken from its holder before its bound without an alarm");
}

// Checks invariant 12: the reported readiness is correct, except for at most a second after a
// fault.
void SimHost::JudgeReadiness(const KeeperTime& now) {
  SimUser& user = process_->user;
  user.NoteReadiness(process_->keeper, now);
  if (!shared_.probes || !shared_.judging) return;
  const bool ready = !user.why_not_ready().has_value();
  auto& since = process_->refused_since;
  switch (Take(1)) {
    case Verdict::kRefused:
      if (!since.has_value()) since = now.clocks.boot;
      return Require(!ready || now.clocks.boot - *since < Readiness::kStands, 12,
                     "it reports that it is ready, but issues no id");
    case Verdict::kIssued:
      Require(ready, 12, "it reports that it is not ready, but issues an id");
      JudgeTags();
      [[fallthrough]];
    case Verdict::kWait:
      since.reset();
  }
}

// Checks invariant 15: under a claim that issues ids, plain tags are served even if the registry
// has lost data.
void SimHost::JudgeTags() const {
  if (!process_->tags) return;
  const std::optional<Refusal> why = process_->tags->WhyNotDefault();
  if (!why || process_->user.strategy().WhyNot()) return;
  throw Violation(15, "a plain tag is refused although the claim issues ids: " + why->message);
}

}  // namespace firn
