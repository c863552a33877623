#include "registry/claim/slot_upkeep.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "registry/cluster/cluster_settings.h"

namespace firn {
namespace {

constexpr int64_t kRenewalsPerWindow = 20;
constexpr uint64_t kInspectMinMs = 30'000;
constexpr Milliseconds kThawCheck{2'000};
constexpr uint64_t kRetryFirstMs = 100;
constexpr int kRetryDoublingsMax = 5;

}  // namespace

SlotUpkeep::SlotUpkeep(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                       const ClaimHooks& hooks, Tenure& tenure, Live live, KeepGrant keep_grant,
                       BootMs now)
    : options_(options),
      entropy_(entropy),
      hooks_(hooks),
      tenure_(tenure),
      live_(live),
      keep_grant_(std::move(keep_grant)),
      registry_clock_(options.skew_max, options.registry_shares_clock),
      kept_(live.session == 0 ? options.kept : KeptBounds()),
      checked_in_(live.session),
      inspect_at_(now + Milliseconds(kInspectMinMs)),
      write_at_(now + kClaimWindowFirst / kRenewalsPerWindow),
      async_registry_(coordinator) {
  const Tenure::Terms& terms = tenure.terms();
  if (!terms.era.zero()) roots_.Note(terms.era, terms.meta_version);
  highest_floor_ = terms.floor;
}

void SlotUpkeep::Lapse(std::string why) {
  fate_ = Fate::kLapsing;
  reason_ = std::move(why);
}

void SlotUpkeep::Tick(const KeeperTime& now, int64_t session, WallMs used) {
  now_ = now;
  connected_in_ = session;
  used_ = used;
  async_registry_.Tick(now.clocks.boot);
  if (!task_.busy()) doing_ = Doing::kNothing;
  if (releasing() && !release_ended_ && now.clocks.boot >= release_until_) {
    EndRelease("the release was not acknowledged in time");
  }
  const bool may_begin = doing_ == Doing::kNothing && connected_in_ != 0;
  if (may_begin && fate_ != Fate::kGone && !release_ended_) Begin(NextAction());
  TellNews();
}

SlotUpkeep::Doing SlotUpkeep::NextAction() {
  const BootMs now = now_.clocks.boot;
  const bool new_session = checked_in_ != connected_in_;
  if (now >= inspect_at_ || (new_session && check_began_in_ != connected_in_)) {
    return Doing::kChecking;
  }
  if (new_session || fate_ != Fate::kHeld) return Doing::kNothing;
  if (now_.id_time >= tenure_.bound() && !releasing()) {
    fate_ = Fate::kGone;
    reason_ = "the bound passed before it could be renewed";
    return Doing::kNothing;
  }
  const bool due = now >= write_at_ || (live_.session != connected_in_ && failures_ == 0);
  return due ? Doing::kWriting : Doing::kNothing;
}

void SlotUpkeep::Begin(Doing what) {
  doing_ = what;
  if (what == Doing::kNothing) return;
  task_ = what == Doing::kWriting ? Write() : CheckSlot();
  async_registry_.Start(task_);
}

void SlotUpkeep::TellNews() {
  for (std::string& alarm : std::exchange(alarms_, {})) {
    if (hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, std::move(alarm)});
  }
  if (std::exchange(clock_is_news_, false)) ReportClock(registry_clock_, now_.clocks, hooks_);
}

// --- renewal and release -------------------------------------------------------------------------

Task<> SlotUpkeep::Write() {
  const Nonce word = tenure_.WordToSend(entropy_);
  // A release needs no grant: it was voided before.
  if (!releasing() && !keep_grant_()) {
    reason_ = "the claim is not renewed because the grant cannot be written";
    co_return Retry();
  }
  const SlotChange change = Change(word);
  const Asked asked{now_.clocks, TimeAt(now_), NextWindow()};
  SlotWritten written = co_await WriteSlot(&async_registry_, &entropy_, change);
  switch (written.outcome) {
    case SlotWritten::Outcome::kApplied:
      if (releasing()) co_return EndRelease({});
      co_return NoteRenewed(change, written, asked);
    case SlotWritten::Outcome::kLiveExists:
      live_ = {.session = 0, .present = true};
      co_return Retry();
    case SlotWritten::Outcome::kLiveMissing:
      live_ = {};
      co_return Retry();
    case SlotWritten::Outcome::kOther:
    case SlotWritten::Outcome::kUnknown:
      // Check the slot before the next write.
      checked_in_ = 0;
      inspect_at_ = now_.clocks.boot;
      break;
    case SlotWritten::Outcome::kNotApplied:
      break;
  }
  reason_ = "the last renewal failed: " + written.reason;
  Retry();
}

void SlotUpkeep::NoteRenewed(const SlotChange& change, const SlotWritten& written,
                             const Asked& asked) {
  kept_ = {};
  predecessor_.reset();
  tenure_.NoteNamed();
  tenure_.Renewed(written.version, change.record.word, written.bound, written.others);
  if (change.live != SlotChange::Live::kLeave) live_ = {change.session, true};
  NoteClock(written.registry_clock, asked.at);
  ++renewals_;
  failures_ = 0;
  write_at_ = now_.clocks.boot + asked.window / kRenewalsPerWindow;
  const Milliseconds ahead = tenure_.bound() - asked.from;
  if (ahead >= asked.window / 2) {
    ++counts_.done;
    return reason_.clear();
  }
  // An immediate retry would not raise the bound further.
  ++counts_.failed;
  reason_ = Cat("the last renewal left the bound only ", DurationText(ahead),
                " ahead: ids have reached ", FormatRfc3339(asked.from),
                ", and no bound may be more than a day ahead of the registry's clock; correct the "
                "local clock, then restart the server");
}

void SlotUpkeep::NoteClock(WallMs shown, Now asked) {
  if (shown == WallMs()) return;
  clock_is_news_ = true;
  const bool disagreed = registry_clock_.disagrees();
  const bool believed = registry_clock_.Hear(shown, asked, now_.clocks);
  if (believed || disagreed) return;
  alarms_.push_back(ClockTrouble(registry_clock_, now_.clocks.boot));
}

WallMs SlotUpkeep::TimeAt(const KeeperTime& now) const {
  const WallMs from = std::max(now.id_time, used_);
  const std::optional<WallMs> registry = registry_clock_.At(now.clocks.boot);
  return registry.has_value() ? std::max(from, tenure_.terms().ClusterTimeAt(*registry)) : from;
}

// The registry's clock limits the bound. Without a believed reading, NextWindow is short.
WallMs SlotUpkeep::WantedBound() const {
  const WallMs ahead = TimeAt(now_) + NextWindow();
  const std::optional<WallMs> registry = registry_clock_.At(now_.clocks.boot);
  return registry.has_value() ? std::min(ahead, tenure_.terms().CeilingAt(*registry)) : ahead;
}

SlotChange SlotUpkeep::Change(const Nonce& word) const {
  const Tenure::Terms& terms = tenure_.terms();
  using Wanted = SlotChange::Live;
  Wanted live = Wanted::kLeave;
  if (releasing()) {
    live = live_.session != 0 ? Wanted::kErase : Wanted::kLeave;
  } else if (live_.session != connected_in_) {
    live = live_.present ? Wanted::kReplace : Wanted::kCreate;
  }
  const Nonce nonce = releasing() && !suspends_ ? Nonce() : terms.nonce;
  SlotRecord record = RecordOf(options_, nonce, terms.base, terms.others);
  record.word = word;
  record.bound = releasing() ? release_bound_ : std::max(terms.bound, WantedBound());
  record.writer = SlotWriter{terms.nonce, terms.era,
                             releasing() ? release_bound_ : std::max(now_.id_time, used_)};
  return {.session = checked_in_,
          .over = terms,
          .record = std::move(record),
          .live = live,
          .endpoint = options_.identity.endpoint,
          .ended = Ended()};
}

// After an offline start, the record still names the dead process whose claim was resumed.
std::vector<PastHolder> SlotUpkeep::Ended() const {
  const Tenure::Terms& terms = tenure_.terms();
  if (!predecessor_.has_value() || predecessor_->first == terms.base) return {};
  return EndedHolders(*predecessor_, terms.offline, options_.identity, terms.base);
}

Milliseconds SlotUpkeep::NextWindow() const {
  if (!registry_clock_.At(now_.clocks.boot).has_value()) {
    return std::min(kClaimWindowFirst, options_.window);
  }
  return renewals_ == 0 ? std::min(kClaimWindowSecond, options_.window) : options_.window;
}

void SlotUpkeep::Retry() {
  if (!releasing()) ++counts_.failed;
  // The first retry is immediate.
  write_at_ = now_.clocks.boot + (failures_ == 0 ? Milliseconds(0) : Pause());
  ++failures_;
}

Milliseconds SlotUpkeep::Pause() {
  const uint64_t ms = kRetryFirstMs << std::min(failures_, kRetryDoublingsMax);
  return Milliseconds(ms / 2 + entropy_.Below(ms));
}

void SlotUpkeep::Release(WallMs bound, BootMs until) {
  release_bound_ = bound;
  release_until_ = until;
  write_at_ = BootMs();
  failures_ = 0;
  // A renewal in flight may still be applied; then the release fails on the version.
  if (doing_ == Doing::kWriting) task_ = {};
  if (fate_ != Fate::kHeld) EndRelease("the claim could not be released");
}

void SlotUpkeep::Suspend(WallMs bound, BootMs until) {
  suspends_ = true;
  Release(bound, until);
}

void SlotUpkeep::EndRelease(std::string reason) {
  release_ended_ = true;
  reason_ = std::move(reason);
}

// --- checks --------------------------------------------------------------------------------------

Task<> SlotUpkeep::CheckSlot() {
  check_began_in_ = connected_in_;
  inspect_at_ = now_.clocks.boot + Milliseconds(kInspectMinMs + entropy_.Below(kInspectMinMs));
  Finding finding = co_await Look();
  // An offline start made no claim, which would have recorded it.
  if (finding.verdict == Finding::Verdict::kOurs && !window_recorded_) {
    const Nonce era = finding.meta->era;
    const Result<ClusterSettings> recorded =
        co_await RaiseWindow(&async_registry_, options_.window, era);
    window_recorded_ = recorded.ok();
    if (!recorded.ok()) finding.verdict = Finding::Verdict::kNoAnswer;
  }
  switch (finding.verdict) {
    case Finding::Verdict::kNoAnswer:
      inspect_at_ = now_.clocks.boot + Pause();
      ++failures_;
      co_return;
    case Finding::Verdict::kOurs:
      co_return NoteOurs(finding);
    case Finding::Verdict::kForeign:
    case Finding::Verdict::kTwin:
      AlarmOf(finding);
      overtaken_ = true;
      fate_ = Fate::kGone;
      break;
    case Finding::Verdict::kMetaMoved:
    case Finding::Verdict::kRestored:
      if (fate_ == Fate::kHeld && finding.verdict == Finding::Verdict::kMetaMoved) {
        alarms_.push_back(finding.reason);
      }
      fate_ = Fate::kLapsing;
      NoteChecked();
      // Notice the end of the freeze soon.
      if (finding.meta.has_value() && finding.meta->frozen) {
        inspect_at_ = now_.clocks.boot + kThawCheck;
      }
      break;
    case Finding::Verdict::kLost:
      lost_up_to_ = std::max(lost_up_to_, tenure_.bound());
      // Alarm once: every check finds the loss again until the cluster is restored.
      if (std::exchange(alarmed_, finding.reason) != finding.reason) {
        alarms_.push_back(finding.reason);
      }
      break;
  }
  reason_ = finding.reason;
  if (releasing()) EndRelease(reason_);
  if (finding.verdict == Finding::Verdict::kLost) co_await FreezeOut();
}

// Inspects the slot, and compares the kept bounds if rule 11 requires it. A frozen cluster need not
// be compared: its slots are safe until a restore, after which the slot is checked again.
Task<Finding> SlotUpkeep::Look() {
  Tenure::Terms held = tenure_.terms();
  Finding finding = co_await Inspect(&async_registry_, held);
  using Verdict = Finding::Verdict;
  const bool whole = finding.verdict == Verdict::kOurs || finding.verdict == Verdict::kMetaMoved ||
                     finding.verdict == Verdict::kRestored;
  const std::optional<ClusterMeta>& meta = finding.meta;
  if (whole && meta && !NoteRoot(finding)) {
    finding.verdict = Verdict::kLost;
    finding.reason = "the cluster's root node is older than one that this server has read";
    lost_up_to_ = std::max(lost_up_to_, highest_floor_ + Milliseconds(1));
    co_return finding;
  }
  if (!whole || kept_.bounds.empty() || !meta || meta->frozen || meta->uuid != kept_.uuid) {
    co_return finding;
  }
  // Of two clocks, since nothing has confirmed either.
  const WallMs now = std::min(now_.id_time, now_.clocks.wall);
  const WallMs passed = now - options_.skew_max;
  const KeptBounds kept = kept_;
  held.era = meta->era;
  held.floor = meta->floor;
  Result<std::string> fault = co_await FindLostBound(&async_registry_, kept, held, passed);
  if (!fault.ok()) {
    finding = {.reason = fault.status().message()};
  } else if (!fault->empty()) {
    finding.verdict = Verdict::kLost;
    finding.reason = *std::move(fault);
    lost_up_to_ = std::max(lost_up_to_, kept.highest());
  }
  co_return finding;
}

// False: it is older than one that was noted, and no restore has set a higher floor since (that of
// version 0.1 draws no era).
bool SlotUpkeep::NoteRoot(const Finding& finding) {
  const ClusterMeta& meta = *finding.meta;
  if (!roots_.Note(meta.era, finding.meta_version)) {
    if (meta.floor <= highest_floor_) return false;
    roots_ = {};
    roots_.Note(meta.era, finding.meta_version);
  }
  highest_floor_ = std::max(highest_floor_, meta.floor);
  return true;
}

void SlotUpkeep::NoteOurs(const Finding& finding) {
  if (fate_ == Fate::kLapsing) {
    NoteChecked();
    return;
  }
  const SlotRecord& record = finding.record;
  tenure_.Renewed(finding.version, record.word, record.bound, record.others);
  predecessor_ = HolderIn(record, finding.meta->era, finding.version);
  tenure_.LearnRoot(finding.meta->era, finding.meta->floor, finding.meta_set_at);
  if (!NoteChecked()) return;
  live_.present = finding.live_session != 0;
  live_.session = finding.live_session == connected_in_ ? connected_in_ : 0;
}

// False: the slot was read in an earlier connection.
bool SlotUpkeep::NoteChecked() {
  if (check_began_in_ != connected_in_) return false;
  checked_in_ = connected_in_;
  return true;
}

// The registry lost the claim or a lease: the holder stops unless the freeze keeps others out.
Task<> SlotUpkeep::FreezeOut() {
  Tenure::Terms held = tenure_.terms();
  const std::string why = Cat(options_.identity.owner, " holds ", SlotText(held.slot), " up to ",
                              FormatRfc3339(held.bound), " and found: ", reason_);
  held.bound = std::max(held.bound, lost_up_to_);
  Status safe = co_await FreezeAndInspect(&async_registry_, held, why);
  fate_ = safe.ok() ? Fate::kLapsing : Fate::kGone;
  if (!safe.ok()) reason_ += "; " + safe.message();
  reason_ = AskForRestore(reason_);
  checked_in_ = safe.ok() ? connected_in_ : 0;
  if (safe.ok()) inspect_at_ = now_.clocks.boot + kThawCheck;
}

// The slot has another holder, which is legitimate once our bound has passed. Before, or if it is a
// copy of this process, ids that both have used are duplicated.
void SlotUpkeep::AlarmOf(const Finding& finding) {
  const WallMs until = std::max(now_.id_time, used_);
  const bool twin = finding.verdict == Finding::Verdict::kTwin;
  if (until >= tenure_.bound() && !twin) return;
  const WallMs from = std::max(tenure_.terms().base, twin ? WallMs() : finding.record.since);
  std::string text = Cat(SlotText(tenure_.terms().slot), ", held here until ",
                         FormatRfc3339(tenure_.bound()), ": ", finding.reason);
  if (used_ >= from) {
    text += Cat("; its ids from ", FormatRfc3339(from), " to ", FormatRfc3339(used_),
                " may be duplicated");
  }
  alarms_.push_back(std::move(text));
}

}  // namespace firn
