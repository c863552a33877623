#include "registry/claim/lease_claim.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "registry/claim/claim_checks.h"
#include "registry/claim/inspection.h"

namespace firn {
namespace {

constexpr int kTakeOversMax = 3;  // a dead process's late write may intervene

}  // namespace

LeaseClaim::LeaseClaim(ClaimOptions options, Coordinator& coordinator, Entropy& entropy,
                       Input input, const KeeperTime& now)
    : options_(std::move(options)),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(std::move(input.hooks)),
      now_(now),
      session_(input.session) {
  if (!options_.lease.has_value()) Die("a lease's claim without a lease");
  if (input.resumed.has_value()) {
    resumption_ = std::make_unique<Resumption>(coordinator_, options_);
    resumption_->task = TakeOver(*std::move(input.resumed));
    resumption_->async_registry.Start(resumption_->task);
    return;
  }
  acquisition_ = std::make_unique<Acquisition>(
      options_, coordinator_, entropy_, Acquisition::Input{.uuid = std::move(input.uuid)}, now);
}

void LeaseClaim::OnSession(const SessionEvent& event) {
  session_ = event.kind == SessionEvent::Kind::kConnected ? event.session : 0;
  if (upkeep_ != nullptr) upkeep_->CheckAgain();
  if (acquisition_ != nullptr) acquisition_->LoseConnection();
}

void LeaseClaim::Tick(const KeeperTime& now) {
  now_ = now;
  switch (state_) {
    case State::kClaiming:
      return resumption_ != nullptr ? FinishResumption() : FinishAcquisition();
    case State::kHeld:
    case State::kReleasing:
      break;
    case State::kRefused:
    case State::kGone:
    case State::kEnded:
      return;
  }
  // Renewals count from the clocks alone. The leased interval depends on the bound, so a bound that
  // depended on the interval would grow without limit.
  upkeep_->Tick(now, session_, tenure_->terms().base);
  reason_ = upkeep_->reason();
  if (state_ == State::kReleasing) {
    if (upkeep_->release_ended()) state_ = State::kEnded;
  } else if (upkeep_->fate() == SlotUpkeep::Fate::kGone) {
    state_ = State::kGone;
  }
}

void LeaseClaim::FinishAcquisition() {
  acquisition_->Tick(now_);
  if (!acquisition_->ended()) return;
  const auto ended = std::move(acquisition_);
  Result<Acquisition::Won> won = ended->Take();
  for (std::string alarm : ended->alarms()) {
    if (hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, std::move(alarm)});
  }
  ReportClock(ended->registry_clock(), now_.clocks, hooks_);
  if (!won.ok()) {
    state_ = State::kRefused;
    reason_ = won.status().message();
    lacks_share_ = ended->lacks_share();
    none_free_ = ended->none_free();
    retry_after_ = ended->retry_after();
    return;
  }
  const SlotUpkeep::Live live{.session = won->live_session, .present = true};
  Hold(std::move(won->terms), live, ended->registry_clock());
  if (ended->connection_lost()) upkeep_->CheckAgain();
}

void LeaseClaim::Hold(Tenure::Terms terms, SlotUpkeep::Live live, const BelievedClock& clock) {
  tenure_.emplace(std::move(terms), options_.layout);
  upkeep_ = std::make_unique<SlotUpkeep>(
      options_, coordinator_, entropy_, hooks_, *tenure_, live, [] { return true; },
      now_.clocks.boot);
  upkeep_->NoteRegistryClock(clock);
  state_ = State::kHeld;
}

// --- a dead process's claim ----------------------------------------------------------------------

// Its nonce shows that the slot was not claimed since. The write is a renewal with a new word:
// one that the dead process has sent can still arrive before it, but not after it, and a copy of
// that process finds the word. Nothing is written if the root node has changed, or if the registry
// may have lost a lower R: then the claim is held up to the R that no other claim begins below.
Task<Result<Tenure::Terms>> LeaseClaim::TakeOver(Dead dead) {
  AsyncRegistry& registry = resumption_->async_registry;
  const Slot where = dead.terms.slot;
  const std::vector<std::string> paths{kMetaPath, SlotPath(where), LivePath(where)};
  for (int tries = 0; tries < kTakeOversMax; ++tries) {
    const int64_t session = registry.session();
    Result<Nodes> nodes = co_await registry.ReadSynced(paths);
    if (!nodes.ok()) co_return nodes.status();
    // Its late write may have suspended the claim since the last try.
    Tenure::Terms terms = dead.terms;
    const std::optional<Node>& slot = (*nodes)[1];
    const auto record = slot ? ParseSlotRecord(slot->data) : Result<SlotRecord>(NotFound(""));
    if (record.ok() && record->nonce == terms.nonce) terms.word = record->word;
    const Finding finding = Judge(terms, (*nodes)[0], slot);
    using Verdict = Finding::Verdict;
    if (finding.verdict != Verdict::kOurs && finding.verdict != Verdict::kMetaMoved) {
      co_return Conflict(finding.reason);
    }
    terms.version = finding.version;
    terms.others = finding.record.others;
    if (!dead.lowered) terms.bound = finding.record.bound;
    // Other servers may have claimed the slot since; a registry that went back has forgotten them.
    const WallMs time = std::max(
        now_.id_time, finding.meta
                          ? ClusterTime(now_.clocks.wall, finding.meta->floor, finding.meta_set_at)
                          : WallMs());
    if (time >= terms.bound) co_return Conflict("its bound has passed");
    if (finding.verdict == Verdict::kMetaMoved) {
      resumption_->final_why = finding.reason;
      co_return terms;
    }
    if (terms.bound < finding.record.bound) {
      resumption_->final_why = "the server's stop has lowered its bound";
      co_return terms;
    }
    terms.era = finding.meta->era;
    terms.floor = finding.meta->floor;
    terms.floor_set_at = finding.meta_set_at;
    const Now asked = now_.clocks;
    const SlotChange change = TakingOver(terms, (*nodes)[2].has_value(), session);
    SlotWritten written = co_await WriteSlot(&registry, &entropy_, change);
    switch (written.outcome) {
      case SlotWritten::Outcome::kApplied:
        resumption_->clock.Hear(written.registry_clock, asked, now_.clocks);
        resumption_->live_session = session;
        terms.version = written.version;
        terms.word = change.record.word;
        terms.bound = written.bound;
        co_return terms;
      case SlotWritten::Outcome::kNotApplied:
      case SlotWritten::Outcome::kUnknown:
        co_return Unavailable(written.reason);
      case SlotWritten::Outcome::kLiveExists:
      case SlotWritten::Outcome::kLiveMissing:
      case SlotWritten::Outcome::kOther:
        break;
    }
  }
  co_return Unavailable("the slot's record changed meanwhile");
}

SlotChange LeaseClaim::TakingOver(const Tenure::Terms& terms, bool live, int64_t session) {
  const WallMs bound = now_.id_time + std::min(kClaimWindowFirst, options_.window);
  SlotRecord record = RecordOf(options_, terms.nonce, terms.base, terms.others);
  record.word = Nonce::Draw(entropy_);
  record.bound = std::max(terms.bound, bound);
  record.writer = SlotWriter{terms.nonce, terms.era, now_.id_time};
  return {.session = session,
          .over = terms,
          .record = std::move(record),
          .live = live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
          .endpoint = options_.identity.endpoint};
}

void LeaseClaim::FinishResumption() {
  resumption_->async_registry.Tick(now_.clocks.boot);
  if (!resumption_->task.done()) return;
  const auto ended = std::move(resumption_);
  Result<Tenure::Terms> terms = ended->task.Take();
  if (!terms.ok()) {
    state_ = State::kRefused;
    reason_ = terms.status().message();
    is_over_ = terms.code() == Code::kConflict;
    return;
  }
  const bool written = ended->live_session != 0;
  Hold(*std::move(terms), {.session = ended->live_session, .present = written}, ended->clock);
  if (!ended->final_why.empty()) upkeep_->Lapse(ended->final_why);
  if (ended->live_session != session_) upkeep_->CheckAgain();
}

// --- the end -------------------------------------------------------------------------------------

void LeaseClaim::Release(WallMs bound, BootMs until) {
  if (state_ != State::kHeld) return;
  state_ = State::kReleasing;
  upkeep_->Release(bound, until);
}

void LeaseClaim::Suspend(WallMs bound, BootMs until) {
  if (state_ != State::kHeld) return;
  state_ = State::kReleasing;
  upkeep_->Suspend(bound, until);
}

void LeaseClaim::Abandon(std::string why) {
  acquisition_.reset();
  resumption_.reset();
  state_ = upkeep_ == nullptr ? State::kRefused : State::kGone;
  reason_ = std::move(why);
}

}  // namespace firn
