#include "registry/claim/claim_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"

namespace firn {
namespace {

constexpr Milliseconds kPushInterval{50};
constexpr Milliseconds kHintInterval{60'000};
constexpr auto kVolatile = StateFolder::Durability::kPageCache;
constexpr GrantEnd kStuckFile{.why = "the grant file in memory can be neither written nor removed",
                              .passes = false};

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

void ClaimKeeper::LoadFiles() {
  started_ = unreached_since_ = now_.clocks.boot;
  LoadGrant();
  const Result<std::string> text = folder_.ReadHint();
  if (!text.ok()) {
    if (text.code() != Code::kNotFound) Tell(ClaimEvent::Kind::kAlarm, text.status().message());
    return;
  }
  const Result<Hint> hint = ParseHint(*text);
  if (!hint.ok()) return Tell(ClaimEvent::Kind::kAlarm, hint.status().message());
  hint_ = *hint;
  uuid_ = hint->uuid;
}

void ClaimKeeper::LoadGrant() {
  if (!has_file_) {
    grant_trouble_ = "no grant file, so the server cannot resume its claim after a crash: " +
                     folder_.has_grant().message();
    return Tell(ClaimEvent::Kind::kAlarm, grant_trouble_);
  }
  const Result<GrantFile::Found> found = grant_file_.Read();
  if (!found.ok()) {
    if (found.code() != Code::kNotFound) Tell(ClaimEvent::Kind::kAlarm, found.status().message());
    return;
  }
  const Grant& grant = found->grant;
  std::string fault;
  if (found->damaged) {
    // The valid record may be the older one, and its L too low.
    fault = "the grant file is damaged";
  } else if (found->identity.boot_id != grant_file_.identity().boot_id) {
    fault = "the grant file is from before the last boot";
  } else if (found->identity != grant_file_.identity()) {
    fault = "the grant file is a copy, or was restored from a backup";
  } else if (grant.uuid.empty()) {
    fault = "the grant file belongs to a static machine id, without a cluster";
  } else if (grant.limit > grant.bound) {
    fault = "the grant file contradicts itself";
  } else if (grant.slot.rack != options_.rack ||
             options_.worker.value_or(grant.slot.worker) != grant.slot.worker) {
    fault = "the grant file belongs to another slot than the requested one";
  }
  last_claim_ = Tenure::TermsOf(grant);  // only for names, so a grant with a fault serves, too
  if (!fault.empty()) return Tell(ClaimEvent::Kind::kRefused, fault + "; making a new claim");
  grant_ = grant;
  highest_bound_ = grant.bound;
  grant_tells_time_ = grant.clocks.Tells(now_.clocks.boot, options_.time_namespace);
  if (grant_tells_time_) {
    SetIdClock(grant.clocks.TimeAt(now_.clocks.boot));
  } else {
    Tell(ClaimEvent::Kind::kRefused,
         "the grant was written in another time namespace, so its clock is not valid here; "
         "the claim is resumed only after a check of the registry's clock");
  }
}

// Only before the first id: afterwards the id clock never goes back.
WallMs ClaimKeeper::SetIdClock(WallMs time) {
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

// What the registry showed is kept beside the slot: a later start compares it (Acquisition).
void ClaimKeeper::KeepHint() {
  const Tenure::Terms& terms = tenure_->terms();
  Hint hint{terms.machine.value(), terms.slot, terms.uuid, options_.layout.text()};
  hint.era = terms.era;
  hint.root_version = terms.meta_version;
  hint.last = options_.layout.StartOf(seen_);
  const bool same = hint_.has_value() && hint_->uuid == hint.uuid && hint_->slot == hint.slot;
  keep_hint_at_ = now_.clocks.boot + kHintInterval;
  // Started without the registry, which was not read since: the claim may be of a later era than
  // the hint, whose file could not be written. No floor lies above ids that are noted in the wrong
  // era.
  if (same && hint.era.zero()) return;
  if (same) hint.last = std::max(hint.last, hint_->last);
  if (hint_ == hint) return;
  folder_.KeepHint(FormatHint(hint));
  hint_ = hint;
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

// False: the file contains an older permission and cannot be removed.
bool ClaimKeeper::KeepGrant(WallMs limit) {
  if (!has_file_) return true;
  const ClockPair clocks{now_.id_time, now_.clocks.boot, options_.time_namespace};
  const Status written = grant_file_.Write(tenure_->GrantUpTo(limit, clocks), kVolatile);
  if (written.ok()) {
    stuck_ = false;
    grant_trouble_.clear();
    return true;
  }
  // An older permission must not outlive what is issued without it.
  const Status removed = grant_file_.Remove();
  has_file_ = !removed.ok();
  const bool known = std::exchange(stuck_, has_file_);
  grant_trouble_ = "the grant file cannot be written: " + written.message();
  if (stuck_) {
    grant_trouble_ +=
        "; it cannot be removed either, so issuing stops at its limit: " + removed.message();
    tenure_->claim()->Explain(kStuckFile);
  }
  if (!known) Tell(ClaimEvent::Kind::kAlarm, grant_trouble_);
  return !stuck_;
}

void ClaimKeeper::Close(std::string why) {
  const auto last = CloseUser();
  VoidGrant();
  Tell(ClaimEvent::Kind::kLost, Cat(SlotText(tenure_->terms().slot), ": ", why, "; last id time ",
                                    FormatRfc3339(options_.layout.StartOf(last)), ", bound ",
                                    FormatRfc3339(tenure_->bound())));
  renewals_ += upkeep_->renewals();
  last_claim_ = tenure_->terms();
  upkeep_.reset();
  tenure_.reset();
  reason_ = std::move(why);
  retry_at_ = now_.clocks.boot;
  state_ = ClaimState::kSeeking;
}

// The bound of a release depends on the result.
firn::Tick ClaimKeeper::CloseUser() {
  const auto last = user_.Close();
  issued_ = issued_ || last >= tenure_->claim()->first_tick();
  if (last < seen_) Die("the last tick of a closed claim is below an earlier report");
  return last;
}

// False: an unusable permission stays in the file, and an alarm is raised.
bool ClaimKeeper::VoidGrant() {
  if (!has_file_) return true;
  const Status voided = grant_file_.Void(kVolatile);
  if (voided.ok()) return true;
  if (grant_file_.Remove().ok()) {
    has_file_ = false;
    return true;
  }
  Tell(ClaimEvent::Kind::kAlarm,
       "the grant file can be neither voided nor removed: " + voided.message());
  return false;
}

// Removes a void grant file when this process makes no further claim: only this process uses the
// file, and to a later start a missing file equals a void one.
void ClaimKeeper::ForgetGrant() {
  if (has_file_) has_file_ = !grant_file_.Remove().ok();
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
  shown.bound = tenure_->bound();
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
