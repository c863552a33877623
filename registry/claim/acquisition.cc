#include "registry/claim/acquisition.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"

namespace firn {

Acquisition::Acquisition(const ClaimOptions& options, Coordinator& coordinator, Entropy& entropy,
                         Input input, const KeeperTime& now)
    : options_(options),
      entropy_(entropy),
      input_(std::move(input)),
      now_(now),
      async_registry_(coordinator),
      registry_clock_(options.skew_max, options.registry_shares_clock),
      acquire_(Acquire()) {
  async_registry_.Start(acquire_);
}

void Acquisition::Tick(const KeeperTime& now) {
  now_ = now;
  async_registry_.Tick(now.clocks.boot);
}

Task<Result<Acquisition::Won>> Acquisition::Acquire() {
  if (!input_.grant.has_value() || !input_.grant_tells_time) {
    Status clock = co_await CheckClock();
    if (!clock.ok()) co_return clock;
  }
  if (input_.grant.has_value()) {
    Result<Won> inherited = co_await Inherit();
    if (input_.grant.has_value()) co_return inherited;
    // The registry has contradicted the grant.
    if (!registry_clock_.At(now_.clocks.boot).has_value()) {
      Status clock = co_await CheckClock();
      if (!clock.ok()) co_return clock;
    }
  }
  Status root = co_await ReadRoot();
  if (!root.ok()) co_return root;
  Status slot = co_await CheckHintedSlot();
  if (!slot.ok()) co_return slot;
  Status kept = co_await CheckKeptBounds();
  if (!kept.ok()) co_return kept;
  if (!input_.overtaken.empty()) co_await NameOvertaken();
  Result<Won> won = co_await TakeFreeSlot();
  if (!won.ok() || Probation() == Milliseconds(0)) co_return won;
  const Won claim = *won;
  co_return co_await WaitOutProbation(claim);
}

// --- 1: inherit ----------------------------------------------------------------------------------

// If it resets the input's grant, the grant cannot be used any more.
Task<Result<Acquisition::Won>> Acquisition::Inherit() {
  const Slot slot = input_.grant->slot;
  const std::vector<std::string> paths{kMetaPath, SlotPath(slot), LivePath(slot)};
  Result<Won> won = Conflict("the grant cannot be used");
  for (int tries = 0; tries < kInheritsMax; ++tries) {
    session_ = async_registry_.session();
    Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
    if (nodes.code() == Code::kCorrupt) {
      // No server can claim over a damaged record, and a restore retires it.
      alarms_.push_back(
          Cat("cannot resume the claim of ", SlotText(slot), ": ", nodes.status().message()));
      break;
    }
    if (!nodes.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
    const Finding finding = Judge(Tenure::TermsOf(*input_.grant), (*nodes)[0], (*nodes)[1]);
    if (!MayInherit(finding)) break;
    const std::optional<Node>& meta = (*nodes)[0];
    Status root = co_await TakeRoot(meta);
    if (!root.ok()) co_return root;
    Status kept = co_await CheckKeptBounds();
    if (!kept.ok()) co_return kept;
    const WallMs ahead = std::max(now_.id_time, input_.grant->limit) + FirstWindow();
    if (IsTooFarAhead(ahead)) {
      alarms_.push_back("the grant's ids are more than a day ahead of the registry's clock");
      break;
    }
    const SurveyedSlot ours{slot, finding.version, input_.grant->created_zxid, finding.record,
                            (*nodes)[2].has_value()};
    const WallMs bound = std::max(finding.record.bound, ahead);
    const SlotChange change = ChangeOf(ours, input_.grant->limit, bound);
    Result<Won> tried = co_await Attempt(change);
    if (tried.ok()) tried->inherited = true;
    won = std::move(tried);
    if (won.code() != Code::kConflict) co_return won;
  }
  input_.grant.reset();
  co_return won;
}

// Whether the registry still shows our claim. Otherwise notes an alarm if an operator should know.
bool Acquisition::MayInherit(const Finding& finding) {
  const std::string& of = input_.grant->uuid;
  const std::string slot = SlotText(input_.grant->slot);
  if (finding.meta.has_value() && finding.meta->uuid != of && input_.uuid != of) {
    // Ids that a dead process used in one cluster do not matter in another.
    alarms_.push_back(Cat("the grant file belongs to cluster ", of, ", but the registry has ",
                          finding.meta->uuid, "; claiming a machine id there"));
  } else if (finding.verdict == Finding::Verdict::kLost) {
    alarms_.push_back(Cat("a claim of ", slot, " was lost: ", finding.reason));
    input_.floor = std::max(input_.floor, input_.grant->bound);
  }
  if (finding.verdict == Finding::Verdict::kTwin) {
    alarms_.push_back(Cat("cannot resume the claim of ", slot, ": ", finding.reason));
  }
  return finding.verdict == Finding::Verdict::kOurs;
}

// --- 4: the attempt ------------------------------------------------------------------------------

Task<Result<Acquisition::Won>> Acquisition::TakeFreeSlot() {
  lacks_share_ = options_.lease.has_value() && lease_share_ == 0;
  if (lacks_share_) {
    co_return Refuse(Cat("the cluster has no machine ids for leases: its lease_share is 0; an "
                         "operator can give leases a share with ",
                         PrintCommand(PrintedCommand::kSet, {"lease_share=50"})),
                     kRetryMax);
  }
  const bool may_hint = input_.hint.has_value() && input_.hint->slot.rack == options_.rack;
  std::optional<Slot> hinted = may_hint ? std::optional(input_.hint->slot) : std::nullopt;
  std::string lost;
  for (int surveys = 0; surveys < kSurveysMax; ++surveys) {
    const SlotQuery query = MakeQuery(std::exchange(hinted, std::nullopt));
    Surveyed surveyed = co_await SurveySlots(&async_registry_, &entropy_, query);
    alarms_.insert(alarms_.end(), surveyed.alarms.begin(), surveyed.alarms.end());
    if (surveyed.candidates.empty()) co_return RefuseNoneFree(surveyed, query.now);
    for (const SurveyedSlot& found : surveyed.candidates) {
      const Result<SlotChange> claiming = Claiming(found);
      if (!claiming.ok()) co_return claiming.status();
      const SlotChange change = *claiming;
      Result<Won> won = co_await Attempt(change);
      if (won.code() != Code::kConflict) co_return won;
      lost = won.status().message();
    }
  }
  co_return Refuse("every free slot changed meanwhile: " + lost, kRetrySoon);
}

SlotQuery Acquisition::MakeQuery(std::optional<Slot> hinted) const {
  return {.rack = options_.rack,
          .workers = split_->workers(),
          .worker = options_.worker,
          .hinted = hinted,
          .owner = options_.identity.owner,
          .now = ClusterTime(),
          .id_time = now_.id_time,
          .released_ahead = options_.lease ? Milliseconds(0) : options_.window,
          .lease_share = lease_share_,
          .for_lease = options_.lease.has_value()};
}

Status Acquisition::RefuseNoneFree(const Surveyed& surveyed, WallMs now) {
  none_free_ = surveyed.none_free;
  const Milliseconds wait =
      surveyed.earliest.has_value() ? *surveyed.earliest - now + Milliseconds(1) : kRetryMax;
  return Refuse("no machine id is free: " + surveyed.reason,
                std::clamp(wait, kRetrySoon, kRetryMax));
}

Result<SlotChange> Acquisition::Claiming(const SurveyedSlot& found) {
  const WallMs base = std::max({now_.id_time, found.record.bound, root_.floor});
  // The claim must outlast the probation, and its bound must be ahead of the cluster's time, which
  // other claimants use. With policy strict, the id clock can be behind that time.
  const WallMs bound = std::max(base, ClusterTime()) + Probation() + FirstWindow();
  if (IsTooFarAhead(bound)) {
    return Refuse(Cat("the ids of this server have reached ", FormatRfc3339(base),
                      ", more than a day ahead of the registry's clock (",
                      FormatRfc3339(*registry_clock_.At(now_.clocks.boot)),
                      "); correct the clock, then restart the server"),
                  kRetryLater);
  }
  return ChangeOf(found, base, bound);
}

SlotChange Acquisition::ChangeOf(const SurveyedSlot& found, WallMs base, WallMs bound) {
  Tenure::Terms over = root_;
  over.slot = found.slot;
  over.machine = *split_->Join(found.slot.worker, found.slot.rack);
  over.version = found.version;
  over.created_zxid = found.created_zxid;
  over.nonce = found.record.nonce;
  over.word = found.record.word;
  over.bound = found.record.bound;
  const ClaimantIdentity& self = options_.identity;
  std::vector<OfflineHolder> unnamed;
  if (input_.last_claim) unnamed = input_.last_claim->UnnamedBy(found.record, found.version);
  PastHolder ended = HolderIn(found.record, root_.era, found.version);
  if (input_.last_claim && input_.last_claim->Wrote(found.record, found.version)) {
    // This process, or the grant, knows how far its own claim came.
    ended.end = std::clamp(input_.last_claim->base, ended.end, ended.bound());
  }
  const Nonce nonce = Nonce::Draw(entropy_);
  SlotRecord record = RecordOf(options_, nonce, base, found.record.others);
  record.word = Nonce::Draw(entropy_);
  record.bound = bound;
  record.writer = SlotWriter{nonce, root_.era, base};
  return {.session = session_,
          .over = std::move(over),
          .record = std::move(record),
          .live = found.live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
          .endpoint = self.endpoint,
          .ended = EndedHolders(std::move(ended), unnamed, self, base)};
}

// kConflict: another claimant was faster. A write that fails only on `live` is resent with another
// nonce; any other failure is a refusal.
Task<Result<Acquisition::Won>> Acquisition::Attempt(SlotChange change) {
  for (int tries = 0;; ++tries) {
    if (connection_lost_)
      co_return Refuse("the connection was lost during the attempt", kRetrySoon);
    const Now asked = now_.clocks;
    SlotWritten written = co_await WriteSlot(&async_registry_, &entropy_, change);
    switch (written.outcome) {
      case SlotWritten::Outcome::kApplied:
        co_return WonBy(change, written, asked);
      case SlotWritten::Outcome::kLiveExists:
        change.live = SlotChange::Live::kReplace;
        break;
      case SlotWritten::Outcome::kLiveMissing:
        change.live = SlotChange::Live::kCreate;
        break;
      case SlotWritten::Outcome::kOther:
        co_return Conflict(written.reason);
      case SlotWritten::Outcome::kNotApplied:
      case SlotWritten::Outcome::kUnknown:
        co_return Refuse("the registry does not answer: " + written.reason, kRetrySoon);
    }
    if (tries == kLiveTriesMax) co_return Conflict(written.reason);
    change.record.nonce = change.record.writer->nonce = Nonce::Draw(entropy_);
  }
}

// --- 5: won --------------------------------------------------------------------------------------

Acquisition::Won Acquisition::WonBy(const SlotChange& change, const SlotWritten& written,
                                    Now asked) {
  registry_clock_.Hear(written.registry_clock, asked, now_.clocks);
  Tenure::Terms terms = change.over;
  terms.nonce = change.record.nonce;
  terms.word = change.record.word;
  terms.version = written.version;
  terms.base = change.record.since;
  terms.bound = written.bound;
  terms.others = written.others;
  return {.terms = std::move(terms), .live_session = change.session};
}

Task<Result<Acquisition::Won>> Acquisition::WaitOutProbation(Won won) {
  const BootMs end = now_.clocks.boot + Probation();
  co_await async_registry_.Until(end);
  Finding finding = co_await Inspect(&async_registry_, won.terms);
  const bool ours = finding.verdict == Finding::Verdict::kOurs;
  if (ours && finding.version == won.terms.version) co_return won;
  co_return Refuse("the claim did not survive its probation: " + finding.reason, kRetrySoon);
}

Milliseconds Acquisition::Probation() const {
  if (root_.floor == WallMs()) return options_.probation;  // never restored
  const WallMs registry = registry_clock_.At(now_.clocks.boot).value_or(root_.floor_set_at);
  const Milliseconds age = std::max(registry - root_.floor_set_at, Milliseconds(0));
  return std::max(options_.probation, options_.restore_probation - age);
}

// --- clocks --------------------------------------------------------------------------------------

// By the registry's clock: our id clock may be far ahead of all others, and so may our wall clock
// if it was set since the check; slots that others hold would look free.
WallMs Acquisition::ClusterTime() const {
  return root_.ClusterTimeAt(registry_clock_.At(now_.clocks.boot).value_or(now_.clocks.wall));
}

bool Acquisition::IsTooFarAhead(WallMs bound) const {
  const std::optional<WallMs> registry = registry_clock_.At(now_.clocks.boot);
  return registry.has_value() && bound > root_.CeilingAt(*registry);
}

Milliseconds Acquisition::FirstWindow() const {
  return std::min(kClaimWindowFirst, options_.window);
}

Status Acquisition::Refuse(std::string reason, Milliseconds retry_after) {
  const auto ms = static_cast<uint64_t>(retry_after.count());
  retry_after_ = Milliseconds(ms / 2 + entropy_.Below(ms));
  return Unavailable(std::move(reason));
}

}  // namespace firn
