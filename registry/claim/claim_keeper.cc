#include "registry/claim/claim_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"

namespace firn {
namespace {

constexpr Milliseconds kPushInterval{50};

}  // namespace

ClaimKeeper::ClaimKeeper(ClaimOptions options, Coordinator& coordinator, StateFolder& folder,
                         ClaimUser& user, Entropy& entropy, ClaimHooks hooks)
    : options_(std::move(options)),
      coordinator_(coordinator),
      folder_(folder),
      user_(user),
      entropy_(entropy),
      hooks_(std::move(hooks)),
      grant_file_(folder),
      reason_(options_.kept_fault.empty() ? "it has just started" : options_.kept_fault),
      has_file_(folder.has_grant().ok()) {}

void ClaimKeeper::OnSession(const SessionEvent& event) {
  if (session_ != 0) unreached_since_ = now_.clocks.boot;
  session_ = event.kind == SessionEvent::Kind::kConnected ? event.session : 0;
  if (upkeep_ != nullptr) upkeep_->CheckAgain();
  if (acquisition_ != nullptr) acquisition_->LoseConnection();
}

void ClaimKeeper::Tick(const KeeperTime& now) {
  if (sentinel_.InChild()) return;
  now_ = now;
  if (!started_.has_value()) LoadFiles();
  if (folder_.TakeCopied()) LeaveToOriginal();
  switch (state_) {
    case ClaimState::kSeeking:
      return Seek();
    case ClaimState::kClaiming:
      return FinishAcquisition();
    case ClaimState::kHolding:
    case ClaimState::kLapsing:
      return Hold();
    case ClaimState::kReleasing:
      return FinishRelease();
    case ClaimState::kReleased:
      return;
  }
}

// --- 1 seeking -----------------------------------------------------------------------------------

// This machine is a copy: the original may continue with the claim, and with an attempt to get one.
void ClaimKeeper::LeaveToOriginal() {
  constexpr auto kWhy = "this machine is a copy, or was put back to a snapshot, while it ran";
  ++copies_;
  Tell(ClaimEvent::Kind::kAlarm, Cat(kWhy, "; its machine id is left to the original"));
  if (state_ == ClaimState::kHolding || state_ == ClaimState::kLapsing) return Close(kWhy);
  grant_.reset();
  VoidGrant();
  if (state_ != ClaimState::kClaiming) return;
  acquisition_.reset();
  state_ = ClaimState::kSeeking;
}

// The time was checked. Has no effect after the first id, since the id clock must not move back.
WallMs ClaimKeeper::SetIdClock(WallMs time) {
  clock_checked_ = true;
  if (!issued_) now_.id_time = user_.SetIdClock(time, now_.clocks);
  return now_.id_time;
}

void ClaimKeeper::Seek() {
  if (StartOffline()) return;
  if (session_ == 0 || now_.clocks.boot < retry_at_) return;
  acquisition_ = std::make_unique<Acquisition>(
      options_, coordinator_, entropy_,
      Acquisition::Input{.grant = grant_,
                         .grant_tells_time = grant_tells_time_,
                         .hint = hint_,
                         .kept = options_.kept,
                         .uuid = uuid_,
                         .floor = lost_up_to_,
                         .last_claim = last_claim_,
                         .overtaken = overtaken_,
                         .overtaken_in = overtaken_in_,
                         .on_clock_checked = [this](WallMs wall) { return SetIdClock(wall); }},
      now_);
  state_ = ClaimState::kClaiming;
}

// Also after an attempt to inherit whose outcome is unknown: the times in [L, R) are ours,
// whichever process holds the slot now. Not after the registry has contradicted the grant.
bool ClaimKeeper::StartOffline() {
  if (session_ != 0 || !grant_.has_value() || !options_.offline_start) return false;
  if (now_.clocks.boot < unreached_since_ + options_.offline_start_after) return false;
  // Ids of another layout would not be compatible with the earlier ones.
  const bool known =
      hint_.has_value() && hint_->uuid == grant_->uuid && hint_->layout == options_.layout.text();
  // Without the registry, a wrong wall clock would not be noticed.
  if (!known || !grant_tells_time_ || grant_->limit >= grant_->bound) return false;
  Tenure::Terms terms = Tenure::TermsOf(*grant_);
  AddOfflineHolder(terms.offline, {terms.base, options_.identity.pid});
  Begin(std::move(terms), {});
  Tell(ClaimEvent::Kind::kOffline,
       "the registry is unreachable; resumed the claim of " + SlotText(tenure_->terms().slot));
  return true;
}

// --- 2 claiming ----------------------------------------------------------------------------------

void ClaimKeeper::FinishAcquisition() {
  acquisition_->Tick(now_);
  if (!acquisition_->ended()) return;
  const auto ended = std::move(acquisition_);
  const Result<Acquisition::Won> won = ended->Take();
  for (const std::string& alarm : ended->alarms()) Tell(ClaimEvent::Kind::kAlarm, alarm);
  ReportClock(ended->registry_clock(), now_.clocks, hooks_);
  if (ended->named_overtaken()) overtaken_.clear();
  lost_up_to_ = std::max(lost_up_to_, ended->lost_up_to());
  highest_bound_ = std::max(highest_bound_, lost_up_to_);
  if (grant_.has_value() && !ended->keeps_grant()) {
    grant_.reset();
    VoidGrant();
  }
  if (!won.ok()) {
    state_ = ClaimState::kSeeking;
    retry_at_ = now_.clocks.boot + ended->retry_after();
    const std::string reason = won.status().message();
    if (reason_ != reason) Tell(ClaimEvent::Kind::kRefused, reason);
    reason_ = reason;
    return;
  }
  Begin(won->terms, {.session = won->live_session, .present = true});
  upkeep_->NoteRegistryClock(ended->registry_clock());
  if (ended->connection_lost()) upkeep_->CheckAgain();
  Tell(won->inherited ? ClaimEvent::Kind::kInherited : ClaimEvent::Kind::kClaimed,
       SlotText(tenure_->terms().slot));
}

void ClaimKeeper::Begin(Tenure::Terms terms, SlotUpkeep::Live live) {
  grant_.reset();
  reason_.clear();
  uuid_ = terms.uuid;
  tenure_.emplace(std::move(terms), options_.layout);
  upkeep_ = std::make_unique<SlotUpkeep>(
      options_, coordinator_, entropy_, hooks_, *tenure_, live,
      [this] { return KeepGrant(tenure_->limit()); }, now_.clocks.boot);
  state_ = ClaimState::kHolding;
  // Written before the first id; if the file cannot be written, L stays at the base.
  RaiseLimit(tenure_->LimitFor(now_.id_time, tenure_->claim()->first_tick() - 1));
  seen_ = tenure_->claim()->first_tick() - 1;
  KeepHint();
  user_.Adopt(tenure_->claim());
  push_at_ = now_.clocks.boot + kPushInterval;
}

// --- 3 holding, 4 lapsing ------------------------------------------------------------------------

void ClaimKeeper::Hold() {
  if (const Status hint = folder_.TakeHintFailure(); !hint.ok()) {
    Tell(ClaimEvent::Kind::kAlarm, hint.message());
  }
  const Layout& layout = options_.layout;
  const auto last = seen_ = std::max(seen_, user_.Last());
  if (now_.clocks.boot >= push_at_) {
    push_at_ = now_.clocks.boot + kPushInterval;
    RaiseLimit(tenure_->LimitFor(now_.id_time, last));
  }
  if (now_.clocks.boot >= keep_hint_at_) KeepHint();
  upkeep_->Tick(now_, session_, layout.StartOf(last));
  highest_bound_ = std::max(highest_bound_, tenure_->bound());
  lost_up_to_ = std::max(lost_up_to_, upkeep_->lost_up_to());
  if (upkeep_->fate() == SlotUpkeep::Fate::kGone) return Close(upkeep_->reason());
  if (upkeep_->fate() != SlotUpkeep::Fate::kLapsing) return;
  state_ = ClaimState::kLapsing;
  if (now_.id_time >= tenure_->bound()) Close(upkeep_->reason());
}

void ClaimKeeper::RaiseLimit(WallMs limit) {
  if (!has_file_) return tenure_->RaiseLimit(tenure_->bound());
  const bool begun = tenure_->limit() == tenure_->terms().base;
  if (limit <= tenure_->limit() && !begun) return;
  if (KeepGrant(limit)) tenure_->RaiseLimit(has_file_ ? limit : tenure_->bound());
}

void ClaimKeeper::Close(std::string why) {
  const auto last = CloseUser();
  VoidGrant();
  Tell(ClaimEvent::Kind::kLost, Cat(SlotText(tenure_->terms().slot), ": ", why, "; last id time ",
                                    FormatRfc3339(options_.layout.StartOf(last)), ", bound ",
                                    FormatRfc3339(tenure_->bound())));
  NoteOvertaken(last);
  renewals_ += upkeep_->renewals();
  last_claim_ = tenure_->terms();
  upkeep_.reset();
  tenure_.reset();
  reason_ = std::move(why);
  retry_at_ = now_.clocks.boot;
  state_ = ClaimState::kSeeking;
}

// The present holder of the slot cannot know what this process issued since its claim was copied,
// or resumed by another process. The record may name this process, so these holdings can overlap.
void ClaimKeeper::NoteOvertaken(firn::Tick last) {
  const Tenure::Terms& terms = tenure_->terms();
  overtaken_.clear();
  if (!upkeep_->overtaken() || last < tenure_->claim()->first_tick()) return;
  const WallMs end = options_.layout.StartOf(last + 1);
  const ClaimantIdentity& self = options_.identity;
  PastHolder first{self.owner, self.host, self.pid, terms.base, end};
  if (!terms.offline.empty()) {
    first.first = terms.offline.front().first;
    first.pid = terms.offline.front().pid;
  }
  overtaken_ = EndedHolders(first, terms.offline, self, end);
  overtaken_in_ = terms.slot;
}

// The bound of a release depends on the result.
firn::Tick ClaimKeeper::CloseUser() {
  const auto last = user_.Close();
  issued_ = issued_ || last >= tenure_->claim()->first_tick();
  if (last < seen_) Die("the last tick of a closed claim is below an earlier report");
  return last;
}

// --- 5 releasing ---------------------------------------------------------------------------------

void ClaimKeeper::Release(const KeeperTime& now) {
  if (sentinel_.InChild()) return;
  now_ = now;
  if (state_ == ClaimState::kReleasing || state_ == ClaimState::kReleased) return;
  acquisition_.reset();
  const bool held = state_ == ClaimState::kHolding;
  state_ = ClaimState::kReleased;
  reason_ = "it was stopped";
  if (!tenure_.has_value()) return;
  const auto last = seen_ = CloseUser();
  KeepHint();
  // The cluster has changed and may have lost the claim: no later start may resume it.
  if (!held && VoidGrant()) ForgetGrant();
  // The slot cannot be released: the file stays, so that the next start can resume the claim.
  if (!held || session_ == 0) return;
  // Times that the grant still permits must not be released to others.
  if (!VoidGrant()) return;
  state_ = ClaimState::kReleasing;
  upkeep_->Release(tenure_->BoundAfter(last), now.clocks.boot + options_.release_wait);
}

void ClaimKeeper::FinishRelease() {
  upkeep_->Tick(now_, session_, tenure_->terms().base);
  if (!upkeep_->release_ended()) return;
  ForgetGrant();
  state_ = ClaimState::kReleased;
  Tell(ClaimEvent::Kind::kReleased,
       SlotText(tenure_->terms().slot) +
           (upkeep_->reason().empty() ? std::string() : ": " + upkeep_->reason()));
}

// --- events and status ---------------------------------------------------------------------------

void ClaimKeeper::Tell(ClaimEvent::Kind kind, std::string text) const {
  if (hooks_.event) hooks_.event({kind, std::move(text)});
}

const Tenure* ClaimKeeper::tenure() const {
  const bool holds = state_ == ClaimState::kHolding || state_ == ClaimState::kLapsing;
  return holds ? &*tenure_ : nullptr;
}

ClaimStatus ClaimKeeper::status(const KeeperTime& now) const {
  ClaimStatus shown;
  shown.state = state_;
  shown.bound = highest_bound_;
  shown.clock_checked = clock_checked_;
  shown.copies = copies_;
  shown.connected = session_ != 0;
  shown.session = session_;
  shown.uuid = uuid_;
  shown.renewals = renewals_;
  if (upkeep_ != nullptr) shown.renewals += upkeep_->renewals();
  shown.reason = reason_;
  shown.grant_trouble = grant_trouble_;
  if (!tenure_.has_value() || state_ == ClaimState::kReleased) {
    shown.retry_after = std::max(retry_at_ - now.clocks.boot, Milliseconds(0));
    if (session_ == 0) shown.reason += "; the registry is unreachable";
    return shown;
  }
  shown.slot = tenure_->terms().slot;
  shown.machine = tenure_->terms().machine;
  shown.nonce = tenure_->terms().nonce;
  shown.bound = std::max(tenure_->bound(), lost_up_to_);
  shown.limit = tenure_->limit();
  shown.left = std::max(tenure_->bound() - now.id_time, Milliseconds(0));
  if (!upkeep_->reason().empty()) shown.reason = upkeep_->reason();
  shown.registry_clock_off = upkeep_->registry_clock().off();
  shown.clock_trouble = ClockTrouble(upkeep_->registry_clock(), now.clocks.boot);
  if (session_ == 0) shown.reason = "the registry is unreachable";
  if (shown.left == Milliseconds(0)) {
    shown.reason += shown.reason.empty() ? "the bound is reached" : "; the bound is reached";
  }
  if (stuck_) {
    shown.reason = grant_trouble_;
    shown.left = std::max(tenure_->limit() - now.id_time, Milliseconds(0));
  }
  return shown;
}

}  // namespace firn
