#include "tests/sim/sim_operator.h"

#include <algorithm>
#include <utility>

#include "common/layout.h"
#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/faulty_coordinator.h"
#include "registry/records.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

// Of one restore of a small cluster, whole or not.
constexpr uint64_t kRestoreMultis = 10;

}  // namespace

void SimOperator::MakeCluster() { MakeClusterUnder(WallMs()); }

void SimOperator::MakeClusterUnder(WallMs floor) {
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  const Layout layout = *Layout::Parse(sizes_.layout);
  const Status connected = registry.Connect(Milliseconds(0));
  const Status made = firn::MakeCluster(
      registry,
      {.layout = layout, .rack_bits = 0, .workers = sizes_.slots, .uuid = uuid_, .floor = floor},
      shared_.dice);
  if (!connected.ok() || !made.ok()) Die("no cluster to simulate");
  uuid_ = ReadMeta(registry)->meta.uuid;
}

// --- what goes wrong -----------------------------------------------------------------------------

void SimOperator::LoseData() {
  const bool wipe = !backup_.has_value() || OneIn(4);
  const bool sessions_stay = !OneIn(sizes_.session_ends_in);
  shared_.Trace(std::string("the registry is ") + (wipe ? "wiped" : "rolled back") +
                (sessions_stay ? "; sessions stay" : ""));
  // Nothing that was on its way arrives at servers that are started anew.
  for (const auto& host : hosts_) host->LoseConnection();
  const auto sessions = sessions_stay ? MemoryTree::Sessions::kStay : MemoryTree::Sessions::kEnd;
  shared_.tree.Load(wipe ? MemoryTree::Image() : *backup_, sessions);
  if (!sessions_stay) shared_.expiring.clear();
  // Sessions that came back with the data are heard of by nobody.
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    const auto live = shared_.tree.Peek(LivePath({0, worker}));
    if (!live.has_value()) continue;
    const int64_t session = live->stat.ephemeral_owner;
    const bool heard_of = std::any_of(hosts_.begin(), hosts_.end(), [session](const auto& host) {
      return host->running() && host->session() == session;
    });
    if (!heard_of) shared_.ExpireLater(session);
  }
  shared_.gap = true;
}

void SimOperator::DeleteRecord() {
  const Slot slot{0, static_cast<uint32_t>(shared_.dice.Below(sizes_.slots))};
  if (!shared_.tree.Peek(SlotPath(slot)).has_value()) return;
  shared_.Trace(SlotText(slot) + " is deleted");
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  static_cast<void>(registry.Multi({Write::Erase(LivePath(slot), Write::kAnyVersion)}));
  std::vector<Write> writes{Write::Erase(SlotPath(slot), Write::kAnyVersion)};
  if (shared_.mutant == Mutant::kQuietRecord) {
    writes.push_back(Write::Create(SlotPath(slot), FormatSlotRecord({}), Lifetime::kPersistent));
  }
  if (!registry.Multi(std::move(writes)).status.ok()) Die("a slot's record cannot be deleted");
}

void SimOperator::RepeatNumbers(SimHost& host) {
  if (OneIn(2)) {
    host.StopBeforeNextClaimOrRenewal([this](const SlotNumbers& known) {
      if (IsWhole()) MakeAnewUpTo(known, 0, nullptr);
    });
  } else if (const Tenure* const tenure = host.tenure()) {
    const Tenure::Terms& terms = tenure->terms();
    const auto sets_left = static_cast<int64_t>(shared_.dice.Below(3)) + 1;
    MakeAnewUpTo({SlotPath(terms.slot), terms.meta_version, terms.version}, sets_left, &host);
  }
}

void SimOperator::MakeAnewUpTo(const SlotNumbers& known, int64_t sets_left,
                               const SimHost* cut_off) {
  const RestoreFacts facts = Facts();
  WallMs floor = facts.now + facts.skew_max;
  for (const WallMs bound : facts.bounds) floor = std::max(floor, bound);
  shared_.Trace("the registry is made anew, up to the numbers of " + known.path);
  for (const auto& host : hosts_) host->LoseConnection();
  shared_.tree.Load({}, MemoryTree::Sessions::kStay);
  MakeClusterUnder(floor + 3 * facts.window);
  lifted_ = {floor + 3 * facts.window, facts.now};
  TouchUpTo(kMetaPath, known.meta_version);
  TouchUpTo(known.path, known.version - sets_left);
  for (const auto& host : hosts_) {
    if (&*host != cut_off) host->Reconnect();
  }
}

void SimOperator::TouchUpTo(const std::string& path, int64_t version) {
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  for (Node node = *shared_.tree.Peek(path); node.stat.version < version; ++node.stat.version) {
    static_cast<void>(registry.Multi({Write::Set(path, node.data, node.stat.version)}));
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

// The operator's connection is lost: before one of the writes, or before the answer to it.
FaultPlan SimOperator::Interruption() {
  const Fate::Kind kind = OneIn(2) ? Fate::Kind::kRefused : Fate::Kind::kAnswerLost;
  return [left = shared_.dice.Below(kRestoreMultis), kind](Verb verb) mutable {
    if (verb != Verb::kMulti) return Fate();
    if (left > 0) return --left, Fate();
    return Fate{kind, {}, {}};
  };
}

// A second operator comes in between, and gets as far as he gets.
FaultPlan SimOperator::Crossing() {
  FaultPlan second = OneIn(2) ? Interruption() : FaultPlan();
  return [this, left = shared_.dice.Below(kRestoreMultis), second](Verb verb) mutable {
    if (verb == Verb::kMulti && left-- == 0) static_cast<void>(RunRestore(second));
    return Fate();
  };
}

RestoreFacts SimOperator::Facts() const {
  RestoreFacts facts{.now = shared_.clock.Wall(), .window = sizes_.window};
  facts.uuid = uuid_;
  facts.layout = *Layout::Parse(sizes_.layout);
  facts.rack_bits = 0;
  facts.workers = sizes_.slots;
  for (const auto& host : hosts_) {
    if (const auto report = host->Report()) AddReport(*report, facts);
    facts.skew_max = std::max(facts.skew_max, host->skew());
  }
  // Ids have run ahead of all clocks since then, and whoever used them may be silent.
  if (lifted_.has_value()) facts.bounds.push_back(lifted_->floor + (facts.now - lifted_->at));
  return facts;
}

// True when it came to its end.
bool SimOperator::RunRestore(FaultPlan plan) {
  FaultyCoordinator coordinator(std::make_unique<MemoryCoordinator>(shared_.tree), shared_.clock,
                                std::move(plan));
  BlockingCoordinator registry(coordinator, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  const Result<RestoreReport> restored = RestoreCluster(registry, Facts(), shared_.dice);
  if (!restored.ok()) {
    shared_.Trace("not restored: " + restored.status().message());
    return false;
  }
  shared_.gap = false;
  lifted_ = {restored->floor, shared_.clock.Wall()};
  shared_.Trace("restored, floor " + std::to_string(restored->floor.ms()));
  return true;
}

// --- looking -------------------------------------------------------------------------------------

bool SimOperator::IsWhole() const {
  const auto meta = shared_.tree.Peek(kMetaPath);
  if (shared_.gap || !meta.has_value() || ParseMeta(meta->data)->frozen) return false;
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    if (!shared_.tree.Peek(SlotPath({0, worker})).has_value()) return false;
  }
  return true;
}

Milliseconds SimOperator::LongestWait() const {
  const Node root = *shared_.tree.Peek(kMetaPath);
  const WallMs now = shared_.clock.Wall();
  const WallMs here = std::max(now, ParseMeta(root.data)->floor + (now - root.stat.modified));
  Milliseconds longest{0};
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    if (shared_.tree.Peek(LivePath({0, worker})).has_value()) continue;
    const Node record = *shared_.tree.Peek(SlotPath({0, worker}));
    longest = std::max(longest, ParseSlotRecord(record.data)->bound - here);
  }
  return longest;
}

std::string SimOperator::RegistryText() const {
  std::string text = "\n  it is " + std::to_string(shared_.clock.Wall().ms());
  if (const auto meta = shared_.tree.Peek(kMetaPath)) text += "\n  " + meta->data;
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    const Slot slot{0, worker};
    const auto record = shared_.tree.Peek(SlotPath(slot));
    const bool live = shared_.tree.Peek(LivePath(slot)).has_value();
    text += "\n  " + SlotText(slot) + (live ? " live " : " ") +
            (record.has_value() ? record->data : "gone");
  }
  return text;
}

}  // namespace firn
