#include "tests/sim/sim_operator.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/id/layout.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/operate/restore/restore_run.h"
#include "registry/operate/restore_policy.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/node_version.h"
#include "tests/sim/sim_reports.h"
#include "tests/sim/violation.h"
#include "tests/support/registry/faulty_coordinator.h"

namespace firn {
namespace {

// Upper limit of the multis that a restore of a small cluster sends.
constexpr uint64_t kRestoreMultis = 10;
constexpr size_t kDocumentsMax = 3;

// Returns the version `sets` writes before `version`, but not -1, at which no node may remain.
int64_t SetsBefore(int64_t version, int64_t sets) {
  const auto before = static_cast<int32_t>(static_cast<uint32_t>(version - sets));
  return before == kUnguardedVersion ? kUnguardedVersion - 1 : before;
}

}  // namespace

void SimOperator::MakeCluster() {
  MakeClusterUnder(WallMs());
  if (!sizes_.wraps) return;
  if (OneIn(2)) shared_.tree.SkipUnguarded();
  shared_.tree.SetVersion(kMetaPath, NearTheWrap());
  for (const Slot slot : Slots()) shared_.tree.SetVersion(SlotPath(slot), NearTheWrap());
}

// Returns a version from which the next writes reach the wrap, or -1.
int64_t SimOperator::NearTheWrap() {
  const auto left = static_cast<int64_t>(shared_.dice.Below(30));
  return OneIn(2) ? INT32_MAX - left : kUnguardedVersion - 1 - left;
}

void SimOperator::SaveBackup() {
  backup_ = shared_.tree.Save();
  TakeDocument();
}

void SimOperator::MakeClusterUnder(WallMs floor) {
  if (!Make({.uuid = uuid_, .floor = floor}).ok()) Die("no cluster to simulate");
}

Status SimOperator::Make(ClusterPlan plan) {
  shared_.registry_clock.SetRight();
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  plan.layout = *Layout::Parse(sizes_.layout);
  plan.rack_bits = sizes_.rack_bits;
  plan.workers = sizes_.slots;
  FIRN_TRY(registry.Connect(Milliseconds(0)));
  FIRN_TRY(firn::MakeCluster(registry, plan, shared_.dice));
  uuid_ = ReadMeta(registry)->meta.uuid;
  return {};
}

bool SimOperator::LoseAndInit(const std::function<bool()>& announced) {
  shared_.Trace("the registry is wiped, and an operator creates a cluster");
  Lose(nullptr, OneIn(sizes_.session_ends_in));
  const Status made = Make({.last_look = [&announced]() -> Status {
    return announced() ? Conflict("a server of another cluster runs") : Status();
  }});
  if (made.ok()) {
    shared_.Trace("a cluster was created");
    shared_.gap = false;
    documents_.clear();
    backup_.reset();
    return true;
  }
  shared_.Trace("no cluster was created: " + made.message());
  replaces_ = true;
  Restore();
  replaces_ = false;
  return false;
}

// --- faults --------------------------------------------------------------------------------------

void SimOperator::LoseData() {
  const bool wipe = !backup_.has_value() || OneIn(4);
  const bool sessions_stay = !OneIn(sizes_.session_ends_in);
  shared_.Trace(std::string("the registry is ") + (wipe ? "wiped" : "rolled back") +
                (sessions_stay ? "; sessions stay" : ""));
  Lose(wipe ? nullptr : &*backup_, !sessions_stay);
}

void SimOperator::Lose(const MemoryTree::Image* back_to, bool sessions_end) {
  // Requests in flight are lost, because the registry's servers restart.
  for (const auto& host : hosts_) host->LoseConnection();
  const auto sessions = sessions_end ? MemoryTree::Sessions::kEnd : MemoryTree::Sessions::kStay;
  shared_.tree.Load(back_to == nullptr ? MemoryTree::Image() : *back_to, sessions);
  if (sessions_end) shared_.expiring.clear();
  // No client has the sessions that were restored with the data.
  for (const Slot slot : Slots()) {
    const auto live = shared_.tree.Peek(LivePath(slot));
    if (!live.has_value()) continue;
    const int64_t session = live->stat.ephemeral_owner;
    const bool heard_of = std::any_of(hosts_.begin(), hosts_.end(), [session](const auto& host) {
      return host->running() && host->session() == session;
    });
    if (!heard_of) shared_.ExpireLater(session);
  }
  shared_.gap = true;
  shared_.book.NoteLoss();
}

void SimOperator::DeleteRecord() {
  const std::vector<Slot> slots = Slots();
  const Slot slot = slots[shared_.dice.Below(slots.size())];
  if (!shared_.tree.Peek(SlotPath(slot)).has_value()) return;
  shared_.Trace(SlotText(slot) + " is deleted");
  shared_.book.NoteLoss();
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  static_cast<void>(registry.Multi({Write::Erase(LivePath(slot), Write::kAnyVersion)}));
  static_cast<void>(registry.Multi({Write::Erase(PastPath(slot), Write::kAnyVersion)}));
  std::vector<Write> writes{Write::Erase(SlotPath(slot), Write::kAnyVersion)};
  if (shared_.mutant == Mutant::kQuietRecord) {
    writes.push_back(Write::Create(SlotPath(slot), FormatSlotRecord({}), Lifetime::kPersistent));
  }
  if (!registry.Multi(std::move(writes)).status.ok()) Die("a slot's record cannot be deleted");
}

void SimOperator::RepeatNumbers(SimHost& host) {
  if (OneIn(2)) {
    host.StopBeforeNextClaimOrRenewal([this](const SlotNumbers& known) {
      if (IsWhole()) RecreateSlotUpTo(known, 0, nullptr);
    });
  } else if (const Tenure* const tenure = host.tenure()) {
    const Tenure::Terms& terms = tenure->terms();
    const auto sets_left = static_cast<int64_t>(shared_.dice.Below(3)) + 1;
    RecreateSlotUpTo({SlotPath(terms.slot), terms.meta_version, terms.version}, sets_left, &host);
  }
}

void SimOperator::RecreateSlotUpTo(const SlotNumbers& known, int64_t sets_left,
                                   const SimHost* cut_off) {
  const RestoreFacts facts = Facts();
  WallMs floor = facts.now + facts.skew_max;
  for (const ReportedBound& reported : facts.bounds) floor = std::max(floor, reported.bound);
  shared_.Trace("the registry is re-created, up to the versions of " + known.path);
  for (const auto& host : hosts_) host->LoseConnection();
  shared_.tree.Load({}, MemoryTree::Sessions::kStay);
  shared_.book.NoteLoss();
  MakeClusterUnder(floor + 3 * facts.window);
  TakeDocument();
  shared_.tree.SetVersion(kMetaPath, known.meta_version);
  shared_.tree.SetVersion(known.path, SetsBefore(known.version, sets_left));
  for (const auto& host : hosts_) {
    if (&*host != cut_off) host->Reconnect();
  }
}

// --- restoring -----------------------------------------------------------------------------------

void SimOperator::Restore() {
  if (!RunRestore({})) throw Violation(0, "the registry cannot be restored");
}

void SimOperator::TryRestore() {
  switch (shared_.dice.Below(4)) {
    case 0:
      static_cast<void>(RunRestore(Interruption()));
      return;
    case 1:
      static_cast<void>(RunRestore(Crossing()));
      return;
    default:
      return Restore();
  }
}

// Interrupts the operator's connection before one of the writes, or before its answer.
FaultPlan SimOperator::Interruption() {
  const Fate::Kind kind = OneIn(2) ? Fate::Kind::kRefused : Fate::Kind::kAnswerLost;
  return [left = shared_.dice.Below(kRestoreMultis), kind](Verb verb) mutable {
    if (verb != Verb::kMulti) return Fate();
    if (left > 0) return --left, Fate();
    return Fate{kind, {}, {}};
  };
}

// Runs a second operator's restore in the middle of the first one.
FaultPlan SimOperator::Crossing() {
  FaultPlan second = OneIn(2) ? Interruption() : FaultPlan();
  return [this, left = shared_.dice.Below(kRestoreMultis), second](Verb verb) mutable {
    if (verb == Verb::kMulti && left-- == 0) static_cast<void>(RunRestore(second));
    return Fate();
  };
}

// Returns the largest known clock error of a server.
Milliseconds SimOperator::SkewMax() const {
  Milliseconds skew = RestoreFacts().skew_max;
  for (const auto& host : hosts_) skew = std::max(skew, host->skew());
  return skew;
}

RestoreFacts SimOperator::Facts() const {
  RestoreFacts facts{.now = shared_.clock.Wall(), .window = sizes_.window};
  facts.uuid = uuid_;
  facts.layout = *Layout::Parse(sizes_.layout);
  facts.rack_bits = sizes_.rack_bits;
  facts.workers = sizes_.slots;
  facts.replaces_unused = replaces_;
  facts.skew_max = SkewMax();
  for (const auto& host : hosts_) {
    if (const auto report = host->Report()) AddReport(*report, facts);
  }
  if (shared_.mutant == Mutant::kDocumentsIgnored) return facts;
  LedgerFacts known{.documents = documents_};
  for (const Backup& document : documents_) {
    known.backup = known.backup ? *MergeBackups(document, *known.backup) : document;
  }
  AddDocuments(known, Audit(), facts);
  return facts;
}

void SimOperator::TakeDocument() {
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  const Result<Backup> document = ReadBackup(registry, "/firn/sim", shared_.clock.Wall());
  if (!document.ok()) return shared_.Trace("no backup: " + document.status().message());
  documents_.push_back(*ParseBackup(FormatBackup(*document)));
  if (documents_.size() > kDocumentsMax) documents_.erase(documents_.begin());
}

// Returns true if the restore was completed.
bool SimOperator::RunRestore(FaultPlan plan) {
  // Corrects the clock first, as the runbook says, because the floor is computed from it.
  shared_.registry_clock.SetRight();
  FaultyCoordinator coordinator(std::make_unique<MemoryCoordinator>(shared_.tree), shared_.clock,
                                std::move(plan));
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  // The command would raise smaller windows to the usual one.
  const bool by_command = sizes_.window == ClusterSettings::kUsualWindow;
  const Result<WallMs> restored = by_command ? RunCommand(registry) : RunSteps(registry);
  if (!restored.ok()) {
    shared_.Trace("not restored: " + restored.status().message());
    return false;
  }
  shared_.gap = false;
  TakeDocument();
  shared_.Trace("restored, floor " + std::to_string(restored->ms()));
  return true;
}

Result<WallMs> SimOperator::RunSteps(BlockingCoordinator& registry) {
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, Facts(), shared_.dice));
  return report.floor;
}

// Runs `firn restore`. The operator of a run that continues another one may lack its documents.
Result<WallMs> SimOperator::RunCommand(BlockingCoordinator& registry) {
  const bool has_servers = PublishAll();
  const RestoreContext context{.clock = shared_.clock,
                               .entropy = shared_.dice,
                               .command = {.registry = "sim", .host = "sim"},
                               .await_reports = [this](bool) { PublishAll(); }};
  const auto root = shared_.tree.Peek(kMetaPath);
  const auto node = shared_.tree.Peek(kRestorePath);
  const auto meta = root ? ParseMeta(root->data) : NotFound("no root node");
  const bool is_unfinished = meta.ok() && node && RestoreMemoryIn(*node, *meta)->memory;
  RestoreOptions options = Options(/*again=*/false);
  if (is_unfinished && !options.documents.empty() && OneIn(3)) {
    RestoreOptions without = options;
    without.documents.clear();
    without.call.ledgers.documents.clear();
    without.call.ledgers.backup.reset();
    const auto refused = firn::RunRestore(registry, context, without);
    if (refused.ok() && refused->question.ok())
      throw Violation(0, "a restore continued without the documents of the first run");
  }
  auto outcome = firn::RunRestore(registry, context, options);
  const bool is_stale = outcome.ok() && outcome->kind == RestoreOutcome::Kind::kNothingNew;
  if (is_stale && shared_.gap) {  // the operator knows that data were lost again
    if (!has_servers) throw Violation(0, "a restore found nothing new after a loss");
    options = Options(/*again=*/true);
    outcome = firn::RunRestore(registry, context, options);
  }
  PublishReports(shared_.tree, shared_.clock, {});
  FIRN_TRY(outcome.status());
  FIRN_TRY(outcome->question);
  return is_stale && !shared_.gap ? outcome->audit.meta->floor : outcome->report.floor;
}

// Returns whether a server runs.
bool SimOperator::PublishAll() {
  std::map<std::string, ProviderReport> reports;
  for (const auto& host : hosts_) {
    const auto report = host->Report();
    if (report) reports.emplace("h" + std::to_string(host->index()) + ":1", *report);
  }
  PublishReports(shared_.tree, shared_.clock, reports);
  return !reports.empty();
}

RestoreOptions SimOperator::Options(bool again) const {
  RestoreOptions options;
  const Status set = SetFlags(
      {"--uuid=" + uuid_, "--layout=" + sizes_.layout, Cat("--rack_bits=", sizes_.rack_bits),
       Cat("--skew_max_ms=", SkewMax().count()), Cat("--again=", again ? "true" : "false"),
       Cat("--set=workers=", sizes_.slots), Cat("--set=window=", sizes_.window.count()),
       "--set=default_strategy=none", "--set=reserve=none", "--set=tags=none"},
      options);
  if (!set.ok()) throw Violation(0, "an operator's flags are refused: " + set.message());
  for (const Backup& document : documents_) {
    if (shared_.mutant == Mutant::kDocumentsIgnored) break;
    const Status added = AddDocument("/backup", document, options);
    if (!added.ok()) throw Violation(0, "a document is refused: " + added.message());
  }
  return options;
}

// --- reading -------------------------------------------------------------------------------------

std::vector<Slot> SimOperator::Slots() const {
  std::vector<Slot> slots;
  for (uint32_t rack = 0; rack < sizes_.racks(); ++rack) {
    for (uint32_t worker = 0; worker < sizes_.slots; ++worker) slots.push_back({rack, worker});
  }
  return slots;
}

bool SimOperator::IsWhole() const {
  const auto meta = shared_.tree.Peek(kMetaPath);
  if (shared_.gap || !meta.has_value() || ParseMeta(meta->data)->frozen) return false;
  for (const Slot slot : Slots()) {
    if (!shared_.tree.Peek(SlotPath(slot)).has_value()) return false;
  }
  return true;
}

Milliseconds SimOperator::LongestWait() const {
  const Node root = *shared_.tree.Peek(kMetaPath);
  const WallMs now = shared_.clock.Wall();
  const WallMs here = std::max(now, ParseMeta(root.data)->floor + (now - root.stat.modified));
  Milliseconds longest{0};
  for (const Slot slot : Slots()) {
    if (shared_.tree.Peek(LivePath(slot)).has_value()) continue;
    const Node record = *shared_.tree.Peek(SlotPath(slot));
    longest = std::max(longest, ParseSlotRecord(record.data)->bound - here);
  }
  return longest;
}

std::string SimOperator::RegistryText() const {
  std::string text = "\n  it is " + std::to_string(shared_.clock.Wall().ms());
  if (const auto meta = shared_.tree.Peek(kMetaPath)) text += "\n  " + meta->data;
  for (const Slot slot : Slots()) {
    const auto record = shared_.tree.Peek(SlotPath(slot));
    const bool live = shared_.tree.Peek(LivePath(slot)).has_value();
    text += "\n  " + SlotText(slot) + (live ? " live " : " ") +
            (record.has_value() ? record->data : "gone");
  }
  return text;
}

}  // namespace firn
