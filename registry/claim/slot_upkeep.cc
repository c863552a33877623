#include "registry/claim/slot_upkeep.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace firn {
namespace {

constexpr int64_t kRenewalsPerWindow = 20;
constexpr uint64_t kInspectMinMs = 30'000;
constexpr Milliseconds kThawLook{2'000};
constexpr uint64_t kRetryFirstMs = 100;
constexpr int kRetryDoublingsMax = 5;

}  // namespace

SlotUpkeep::SlotUpkeep(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                       const ClaimHooks& hooks, Tenure& tenure, Live live, KeepGrant keep_grant,
                       BootMs now)
    : options_(options),
      coordinator_(coordinator),
      entropy_(entropy),
      hooks_(hooks),
      tenure_(tenure),
      live_(live),
      keep_grant_(std::move(keep_grant)),
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
  const Nonce& word = tenure_.WordToSend(entropy_);
  // A release comes after the grant was made void.
  if (!releasing() && !keep_grant_()) {
    reason_ = "the grant cannot be written, so nothing is renewed";
    return Retry();
  }
  write_ = std::make_unique<SlotWrite>(coordinator_, entropy_, Change(word));
}

// The registry's clock tells how far a bound may go; without it only a little.
WallMs SlotUpkeep::WantedBound() const {
  const WallMs from = std::max(now_.id_time, used_);
  if (registry_clock_.shown == WallMs()) return from + kClaimWindowFirst;
  const WallMs registry = registry_clock_.shown + (now_.clocks.boot - registry_clock_.at);
  const Tenure::Terms& terms = tenure_.terms();
  // An id clock that stands still (policy strict) would fall behind, and the slot look free.
  const WallMs ahead = std::max(from, terms.ClusterTimeAt(registry)) + NextWindow();
  return std::min(ahead, terms.CeilingAt(registry));
}

SlotChange SlotUpkeep::Change(const Nonce& word) const {
  const Tenure::Terms& terms = tenure_.terms();
  const ClaimantIdentity& self = options_.identity;
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
          .over_word = terms.word,
          .over_bound = terms.bound,
          .record = {.nonce = releasing() ? Nonce() : terms.nonce,
                     .word = word,
                     .bound = releasing() ? release_bound_ : std::max(terms.bound, WantedBound()),
                     .owner = self.owner,
                     .since = terms.base,
                     .host = self.host,
                     .pid = self.pid,
                     .build = self.build,
                     .others = terms.others},
          .live = live,
          .endpoint = self.endpoint,
          .ended = Ended()};
}

// A dead process's claim that was gone on with while the registry was away shows his name still.
std::optional<PastHolder> SlotUpkeep::Ended() const {
  if (!predecessor_.has_value() || predecessor_->first == tenure_.terms().base) return std::nullopt;
  return predecessor_->Until(tenure_.terms().base);
}

Milliseconds SlotUpkeep::NextWindow() const {
  return renewals_ == 0 ? std::min(kClaimWindowSecond, options_.window) : options_.window;
}

void SlotUpkeep::FinishWrite() {
  const auto write = std::move(write_);
  switch (write->outcome()) {
    case SlotWrite::Outcome::kApplied: {
      if (releasing()) return EndRelease({});
      predecessor_.reset();
      const Milliseconds window = NextWindow();
      tenure_.Renewed(write->version(), write->change().record.word, write->bound(),
                      write->others());
      if (write->change().live != SlotChange::Live::kLeave) live_ = {write->change().session, true};
      if (write->registry_clock() != WallMs()) {
        registry_clock_ = {write->registry_clock(), now_.clocks.boot};
        if (hooks_.registry_clock) hooks_.registry_clock(write->registry_clock(), now_.clocks);
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
      tenure_.Renewed(finding.version, finding.word, finding.bound, finding.others);
      predecessor_ = finding.holder;
      tenure_.LearnRoot(finding.meta->era, finding.meta->floor, finding.meta_set_at);
      if (!same_session) return;
      looked_in_ = connected_in_;
      live_.present = inspection->live_session() != 0;
      live_.session = inspection->live_session() == connected_in_ ? connected_in_ : 0;
      return;
    case Finding::Verdict::kForeign:
    case Finding::Verdict::kTwin:
      AlarmOf(finding);
      fate_ = Fate::kGone;
      reason_ = finding.reason;
      break;
    case Finding::Verdict::kMetaMoved:
      if (fate_ == Fate::kHeld) Alarm(finding.reason);
      fate_ = Fate::kLapsing;
      reason_ = finding.reason;
      // That it goes on shall be told soon, too.
      if (finding.meta->frozen) inspect_at_ = now_.clocks.boot + kThawLook;
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
  if (safe) inspect_at_ = now_.clocks.boot + kThawLook;
}

// Somebody else has the slot. Once our bound has passed he may claim it; before, and if he is a
// copy of us, what both have used is out twice.
void SlotUpkeep::AlarmOf(const Finding& finding) const {
  const WallMs until = std::max(now_.id_time, used_);
  const bool twin = finding.verdict == Finding::Verdict::kTwin;
  if (until >= tenure_.bound() && !twin) return;
  const WallMs from = std::max(tenure_.terms().base, twin ? WallMs() : finding.holder.first);
  std::string text = SlotText(tenure_.terms().slot) + ", held here up to " +
                     std::to_string(tenure_.bound().ms()) + " ms: " + finding.reason;
  if (used_ >= from) {
    text += "; its ids of " + std::to_string(from.ms()) + " to " + std::to_string(used_.ms()) +
            " ms may be out twice";
  }
  Alarm(std::move(text));
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
