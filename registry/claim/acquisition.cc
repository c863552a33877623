#include "registry/claim/acquisition.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr Milliseconds kRetrySoon{200}, kRetryLater{2'000}, kRetryMax{5'000};

}  // namespace

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

// --- 2: the clock --------------------------------------------------------------------------------

Task<Status> Acquisition::CheckClock() {
  const Now asked_at = now_.clocks;
  const std::vector<Write> writes{
      Write::Set(kClockPath, options_.identity.owner, Write::kAnyVersion)};
  Written answer = co_await async_registry_.Multi(writes);
  const Status& status = answer.status;
  if (status.code() == Code::kNotFound) {
    co_return Refuse(HowToCreate("there is no cluster here, or it is incomplete"), kRetryLater);
  }
  if (status.code() == Code::kDenied) {
    co_return Refuse(status.message() + "; restart with the right --registry_auth_file",
                     kRetryLater);
  }
  if (answer.fate != Written::Fate::kDone) {
    co_return Refuse("the registry does not answer: " + status.message(), kRetrySoon);
  }
  const WallMs shown = answer.stats.at(0).modified;
  std::string fault = ClockFault(options_, asked_at, shown, now_.clocks);
  if (!fault.empty()) {
    registry_clock_.Hear(shown, asked_at, now_.clocks);
    co_return Refuse(std::move(fault), kRetryLater);
  }
  if (shown != WallMs()) registry_clock_.Confirm(shown, now_.clocks.boot);
  if (input_.on_clock_checked) now_.id_time = input_.on_clock_checked(now_.clocks.wall);
  co_return Status();
}

// --- 3: meta -------------------------------------------------------------------------------------

Task<Status> Acquisition::ReadRoot() {
  session_ = async_registry_.session();
  const std::vector<std::string> paths{kMetaPath};
  Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
  if (nodes.code() == Code::kCorrupt) {
    co_return Refuse(HowToCreate(nodes.status().message()), kRetryLater);
  }
  if (!nodes.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
  const std::optional<Node>& root = nodes->front();
  co_return co_await TakeRoot(root);
}

// Adopts this root node for the claim, or refuses it.
Task<Status> Acquisition::TakeRoot(std::optional<Node> node) {
  if (!node.has_value()) {
    co_return Refuse(HowToCreate("there is no cluster here"), kRetryLater);
  }
  const Result<ClusterMeta> meta = ParseMeta(node->data);
  std::string fault = MetaFault(options_, meta, node->stat.version, input_.uuid);
  if (!fault.empty()) co_return Refuse(std::move(fault), kRetryLater);
  split_ = *RackSplit::Make(options_.layout, meta->rack_bits);
  root_.meta_version = node->stat.version;
  root_.era = meta->era;
  root_.uuid = meta->uuid;
  root_.floor = meta->floor;
  root_.floor_set_at = node->stat.modified;
  const std::optional<Hint>& hint = input_.hint;
  const bool same_era = hint && hint->uuid == meta->uuid && hint->era == meta->era;
  if (same_era && IsOlder(node->stat.version, hint->root_version)) {
    input_.floor = std::max(input_.floor, hint->last);
    const WallMs above = std::max(hint->last, root_.floor + Milliseconds(1));
    std::string why = Cat("its root node is older than the one that ", options_.identity.owner,
                          " read before it was stopped");
    co_return co_await FreezeBehind(above, why);
  }
  if (root_.floor >= input_.floor) co_return Status();
  // The cluster forgot a claim of this server, and no restore has lifted the floor above it.
  std::string why =
      Cat("it lost the claim of ", options_.identity.owner, " until ", FormatRfc3339(input_.floor));
  const WallMs floor = input_.floor;
  co_return co_await FreezeBehind(floor, why);
}

// Compares the registry with the ids that this server issued in its slot before it was stopped.
Task<Status> Acquisition::CheckHintedSlot() {
  const std::optional<Hint>& hint = input_.hint;
  if (!hint || hint->era.zero() || hint->uuid != root_.uuid) co_return Status();
  const bool same_era = hint->era == root_.era;
  if (!same_era && root_.floor >= hint->last) co_return Status();
  const std::vector<std::string> slot{SlotPath(hint->slot)};
  Result<Nodes> nodes = co_await async_registry_.ReadSynced(slot);
  if (nodes.code() == Code::kCorrupt) co_return Status();  // no server can claim it
  if (!nodes.ok()) co_return Refuse("the registry does not answer", kRetrySoon);
  const std::optional<Node>& node = nodes->front();
  if (node.has_value()) {
    const Result<SlotRecord> record = ParseSlotRecord(node->data);
    const bool covered = record.ok() && same_era && record->bound >= hint->last;
    if (!record.ok() || record->retired || covered) co_return Status();
  }
  const std::string low = same_era ? "the bound of " + SlotText(hint->slot) : "its floor";
  std::string why = Cat(low, " is lower than the ids that ", options_.identity.owner,
                        " issued until ", FormatRfc3339(hint->last));
  const WallMs last = hint->last;
  input_.floor = std::max(input_.floor, last);
  co_return co_await FreezeBehind(last, why);
}

// Freezes a cluster whose data went back, unless its floor is at or above `floor_needed`: then it
// was restored since. Nothing is claimed either way.
Task<Status> Acquisition::FreezeBehind(WallMs floor_needed, std::string why) {
  Tenure::Terms held;
  held.bound = floor_needed;
  Status frozen = co_await FreezeAndInspect(&async_registry_, held, why);
  static_cast<void>(frozen);
  co_return Refuse(AskForRestore("the registry went back in time: " + why), kRetryLater);
}

// --- 4: the attempt ------------------------------------------------------------------------------

Task<Result<Acquisition::Won>> Acquisition::TakeFreeSlot() {
  const bool may_hint = input_.hint.has_value() && input_.hint->slot.rack == options_.rack;
  std::optional<Slot> hinted = may_hint ? std::optional(input_.hint->slot) : std::nullopt;
  std::string lost;
  for (int surveys = 0; surveys < kSurveysMax; ++surveys) {
    const SlotQuery query = MakeQuery(std::exchange(hinted, std::nullopt));
    Surveyed surveyed = co_await SurveySlots(&async_registry_, &entropy_, query);
    alarms_.insert(alarms_.end(), surveyed.alarms.begin(), surveyed.alarms.end());
    if (surveyed.candidates.empty()) co_return NoneFree(surveyed, query.now);
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
          .released_ahead = options_.window};
}

Status Acquisition::NoneFree(const Surveyed& surveyed, WallMs now) {
  const Milliseconds wait =
      surveyed.earliest.has_value() ? *surveyed.earliest - now + Milliseconds(1) : kRetryMax;
  return Refuse("no machine id is free: " + surveyed.reason,
                std::clamp(wait, kRetrySoon, kRetryMax));
}

Result<SlotChange> Acquisition::Claiming(const SurveyedSlot& found) {
  const WallMs base = std::max({now_.id_time, found.record.bound, root_.floor});
  // The probation must not use the claim up, and the bound must not have passed by the cluster's
  // time, which others use: an id clock that stands still (policy strict) is behind it.
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
  return {.session = session_,
          .over = std::move(over),
          .record = {.nonce = Nonce::Draw(entropy_),
                     .word = Nonce::Draw(entropy_),
                     .bound = bound,
                     .owner = self.owner,
                     .since = base,
                     .host = self.host,
                     .pid = self.pid,
                     .build = self.build,
                     .others = found.record.others},
          .live = found.live ? SlotChange::Live::kReplace : SlotChange::Live::kCreate,
          .endpoint = self.endpoint,
          .ended = EndedHolders(HolderIn(found.record), unnamed, self, base)};
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
    change.record.nonce = Nonce::Draw(entropy_);
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

// A cluster made without the uuid that this process knows would be foreign to it.
std::string Acquisition::HowToCreate(const std::string& missing) const {
  if (!input_.uuid.empty()) return AskForRestore(missing + ": its data were lost");
  return missing + "; run " + PrintCommand(PrintedCommand::kInit) +
         " if it is new; if its data were lost, use the " + PrintCommand(PrintedCommand::kRestore) +
         " command in the other servers' logs";
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
