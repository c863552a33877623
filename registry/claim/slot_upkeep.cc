#include "registry/claim/slot_upkeep.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace firn {
namespace {

constexpr int64_t kRenewalsPerWindow = 20;
constexpr uint64_t kInspectMinMs = 30'000;
constexpr uint64_t kRetryFirstMs = 100;
constexpr int kRetryDoublingsMax = 5;

}  // namespace

SlotUpkeep::SlotUpkeep(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                       const ClaimHooks& hooks, Tenure& tenure, Live live, BootMs now)
    : options_(options),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(hooks),
      tenure_(tenure),
      live_(live),
      looked_in_(live.session),
      inspect_at_(now + Milliseconds(kInspectMinMs)),
      write_at_(now + kClaimWindowFirst / kRenewalsPerWindow) {}

void SlotUpkeep::Tick(const KeeperTime& now, int64_t session, WallMs used) {
  now_ = now;
  connected_in_ = session;
  used_ = used;
  GoOn();
  const bool busy = write_ != nullptr || inspection_ != nullptr || freeze_ != nullptr;
  if (releasing() && !release_ended_ && now_.clocks.boot >= release_until_) {
    EndRelease("the release was not acknowledged in time");
  }
  if (!busy && connected_in_ != 0 && fate_ != Fate::kGone && !release_ended_) StartNext();
}

void SlotUpkeep::GoOn() {
  if (write_ != nullptr) {
    write_->Tick(now_.clocks.boot);
    if (write_->outcome() != SlotWrite::Outcome::kPending) FinishWrite();
  } else if (inspection_ != nullptr) {
    inspection_->Tick();
    if (inspection_->done()) FinishInspection();
  } else if (freeze_ != nullptr) {
    freeze_->Tick();
    if (freeze_->outcome() != Freeze::Outcome::kPending) FinishFreeze();
  }
}

void SlotUpkeep::StartNext() {
  const BootMs now = now_.clocks.boot;
  const bool new_session = looked_in_ != connected_in_;
  if (now >= inspect_at_ || (new_session && (look_began_in_ != connected_in_))) {
    look_began_in_ = connected_in_;
    inspect_at_ = now + Milliseconds(kInspectMinMs + entropy_.Below(kInspectMinMs));
    inspection_ = std::make_unique<Inspection>(coordinator_, tenure_.terms());
    return;
  }
  if (new_session || fate_ != Fate::kHeld) return;
  if (now_.id_time >= tenure_.bound() && !releasing()) {
    fate_ = Fate::kGone;
    reason_ = "its bound has passed before it could be renewed";
    return;
  }
  if (now >= write_at_ || (live_.session != connected_in_ && failures_ == 0)) StartWrite();
}

// --- renewal and release -------------------------------------------------------------------------

void SlotUpkeep::StartWrite() {
  write_ = std::make_unique<SlotWrite>(coordinator_, entropy_, Change());
}

SlotChange SlotUpkeep::Change() const {
  const Tenure::Terms& terms = tenure_.terms();
  const ClaimantIdentity& self = options_.identity;
  const WallMs ahead = std::max(now_.id_time, used_) + NextWindow();
  using Wanted = SlotChange::Live;
  Wanted live = Wanted::kLeave;
  if (releasing()) {
    live = live_.session != 0 ? Wanted::kErase : Wanted::kLeave;
  } else if (live_.session != connected_in_) {
    live = live_.present ? Wanted::kReplace : Wanted::kCreate;
  }
  return {.session = looked_in_,
          .slot = terms.slot,
          .meta_version = terms.meta_version,
          .era = terms.era,
          .uuid = terms.uuid,
          .version = terms.version,
          .created_zxid = terms.created_zxid,
          .over_nonce = terms.nonce,
          .over_bound = terms.bound,
          .record = {.nonce = releasing() ? Nonce() : terms.nonce,
                     .bound = releasing() ? release_bound_ : std::max(terms.bound, ahead),
                     .owner = self.owner,
                     .since = terms.base,
                     .host = self.host,
                     .pid = self.pid,
                     .build = self.build},
          .live = live,
          .endpoint = self.endpoint};
}

Milliseconds SlotUpkeep::NextWindow() const {
  return renewals_ == 0 ? std::min(kClaimWindowSecond, options_.window) : options_.window;
}

void SlotUpkeep::FinishWrite() {
  const auto write = std::move(write_);
  switch (write->outcome()) {
    case SlotWrite::Outcome::kApplied: {
      if (releasing()) return EndRelease({});
      const Milliseconds window = NextWindow();
      tenure_.Renewed(write->version(), write->bound());
      if (write->change().live != SlotChange::Live::kLeave) live_ = {write->change().session, true};
      if (hooks_.registry_clock && write->registry_clock().ms() != 0) {
        hooks_.registry_clock(write->registry_clock(), now_.clocks);
      }
      ++renewals_;
      ++counts_.done;
      failures_ = 0;
      write_at_ = now_.clocks.boot + window / kRenewalsPerWindow;
      reason_.clear();
      return;
    }
    case SlotWrite::Outcome::kLiveExists:
      live_.present = true;
      live_.session = 0;
      return Retry();
    case SlotWrite::Outcome::kLiveMissing:
      live_ = {};
      return Retry();
    case SlotWrite::Outcome::kOther:
    case SlotWrite::Outcome::kUnknown:
      looked_in_ = 0;
      inspect_at_ = now_.clocks.boot;
      [[fallthrough]];
    default:
      reason_ = "the last renewal failed: " + write->reason();
      return Retry();
  }
}

void SlotUpkeep::Retry() {
  if (!releasing()) ++counts_.failed;
  const uint64_t ms = kRetryFirstMs << std::min(failures_, kRetryDoublingsMax);
  if (failures_++ == 0) {
    write_at_ = now_.clocks.boot;
    return;
  }
  write_at_ = now_.clocks.boot + Milliseconds(ms / 2 + entropy_.Below(ms));
}

void SlotUpkeep::Release(WallMs bound, BootMs until) {
  release_bound_ = bound;
  release_until_ = until;
  write_at_ = BootMs();
  failures_ = 0;
  // A renewal under way may still be applied; the version tells.
  write_.reset();
  if (fate_ != Fate::kHeld) EndRelease("the claim could not be given back");
}

void SlotUpkeep::EndRelease(std::string reason) {
  release_ended_ = true;
  reason_ = std::move(reason);
}

// --- looking -------------------------------------------------------------------------------------

void SlotUpkeep::FinishInspection() {
  const auto inspection = std::move(inspection_);
  const Finding& finding = inspection->finding();
  const bool same_session = look_began_in_ == connected_in_;
  switch (finding.verdict) {
    case Finding::Verdict::kNoAnswer: {
      const uint64_t ms = kRetryFirstMs << std::min(failures_++, kRetryDoublingsMax);
      inspect_at_ = now_.clocks.boot + Milliseconds(ms / 2 + entropy_.Below(ms));
      return;
    }
    case Finding::Verdict::kOurs:
      tenure_.Renewed(finding.version, finding.bound);
      tenure_.LearnEra(finding.meta->era);
      if (!same_session) return;
      looked_in_ = connected_in_;
      live_.present = inspection->live_session() != 0;
      live_.session = inspection->live_session() == connected_in_ ? connected_in_ : 0;
      return;
    case Finding::Verdict::kForeign:
      fate_ = Fate::kGone;
      reason_ = finding.reason;
      break;
    case Finding::Verdict::kMetaMoved:
      if (fate_ == Fate::kHeld) Alarm(finding.reason);
      fate_ = Fate::kLapsing;
      reason_ = finding.reason;
      break;
    case Finding::Verdict::kLost:
      lost_ = true;
      reason_ = finding.reason;
      Alarm(finding.reason);
      freeze_ = std::make_unique<Freeze>(
          coordinator_, tenure_.terms(),
          options_.identity.owner + " holds " + SlotText(tenure_.terms().slot) + " up to " +
              std::to_string(tenure_.bound().ms()) + " ms and found that " + finding.reason);
      break;
  }
  if (releasing()) EndRelease(reason_);
}

void SlotUpkeep::FinishFreeze() {
  const auto freeze = std::move(freeze_);
  if (fate_ == Fate::kGone) return;
  const bool safe = freeze->outcome() == Freeze::Outcome::kSafe;
  fate_ = safe ? Fate::kLapsing : Fate::kGone;
  reason_ += safe ? "; run firn restore" : "; " + freeze->reason() + "; run firn restore";
  looked_in_ = safe ? connected_in_ : 0;
}

void SlotUpkeep::Alarm(std::string text) const {
  if (hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, std::move(text)});
}

BootMs SlotUpkeep::wake() const {
  if (write_ != nullptr) return write_->wake();
  if (connected_in_ == 0 || inspection_ != nullptr || freeze_ != nullptr) return BootMs();
  return fate_ == Fate::kHeld ? std::min(inspect_at_, write_at_) : inspect_at_;
}

}  // namespace firn
