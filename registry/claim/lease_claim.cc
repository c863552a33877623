#include "registry/claim/lease_claim.h"

#include <utility>

#include "registry/claim/claim_checks.h"

namespace firn {

LeaseClaim::LeaseClaim(ClaimOptions options, Coordinator& coordinator, Entropy& entropy,
                       Input input, const KeeperTime& now)
    : options_(std::move(options)),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(std::move(input.hooks)),
      now_(now),
      session_(input.session) {
  if (!options_.lease.has_value()) Die("a lease's claim without a lease");
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
      return FinishAcquisition();
    case State::kHeld:
    case State::kReleasing:
      break;
    case State::kRefused:
    case State::kGone:
    case State::kEnded:
      return;
  }
  // Its renewals count from the clocks alone: what was promised follows the bound, so a bound that
  // followed the promise would run away.
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
  tenure_.emplace(std::move(won->terms), options_.layout);
  const SlotUpkeep::Live live{.session = won->live_session, .present = true};
  upkeep_ = std::make_unique<SlotUpkeep>(
      options_, coordinator_, entropy_, hooks_, *tenure_, live, [] { return true; },
      now_.clocks.boot);
  upkeep_->NoteRegistryClock(ended->registry_clock());
  if (ended->connection_lost()) upkeep_->CheckAgain();
  state_ = State::kHeld;
}

void LeaseClaim::Release(WallMs bound, BootMs until) {
  if (state_ != State::kHeld) return;
  state_ = State::kReleasing;
  upkeep_->Release(bound, until);
}

}  // namespace firn
