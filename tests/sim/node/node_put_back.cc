// Stops the whole cluster, replaces its registry by an older copy, and starts servers with it.

#include <algorithm>
#include <utility>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/sim/node/node_world.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr Milliseconds kRound{50};
constexpr int kServingRounds = 200;
constexpr int kQuietRounds = 40;
constexpr int kStopRounds = 1'200;
constexpr int kFreezeRounds = 1'200;

constexpr char kNumbers[] = "numbers";

}  // namespace

int64_t NodeWorld::LedgerHigh() const {
  return ReadTagNode(kNumbers, tree_.Peek(TagPath(kNumbers))->data)->tag.high;
}

bool NodeWorld::Frozen() const { return ParseMeta(tree_.Peek(kMetaPath)->data)->frozen; }

// Returns the highest ledger in the restore commands that servers print now.
int64_t NodeWorld::HighestReported() const {
  int64_t high = 0;
  for (const auto& host : hosts_) {
    if (const auto report = host->Report()) high = std::max(high, report->HighOf(kNumbers));
  }
  return high;
}

// Runs rounds of all hosts until `ended`, but at most `rounds`. Returns whether it has ended.
bool NodeWorld::Rounds(int rounds, bool serve, const std::function<bool()>& ended) {
  for (int i = 0; i < rounds && !ended(); ++i) {
    ++steps_;
    clock_.Advance(kRound);
    ExpireSessions();
    for (const auto& host : hosts_) {
      host->RunGhost();
      host->Round();
      if (serve) host->Serve();
    }
  }
  return ended();
}

// Stops every server cleanly after the copy was made, so that each knows a later ledger, and puts
// the copy back. The copy is harmless if its ledger is above all numbers issued later, which is
// possible because servers return ranges.
void NodeWorld::PutBackRegistry() {
  const FaultRates rates = shared_.rates;
  const uint64_t cuts_one_in = shared_.cuts_one_in;
  DemandService();
  const MemoryTree::Image copy = tree_.Save();
  const int64_t saved = LedgerHigh();
  const auto never = [] { return false; };
  Rounds(kServingRounds, true, never);
  Rounds(kQuietRounds, false, never);
  for (const auto& host : hosts_) host->Stop();
  const auto all_down = [this] {
    return std::ranges::none_of(hosts_, [](const auto& host) { return host->up(); });
  };
  Require(Rounds(kStopRounds, false, all_down), 6, "a server does not stop");
  if (LedgerHigh() > saved) {
    shared_.Trace("the registry is put back");
    tree_.Load(copy);
    put_back_ = true;
    Rounds(kFreezeRounds, true, [this] {
      if (OneIn(20)) AnyHost().Start(true);
      printed_high_ = std::max(printed_high_, HighestReported());
      return Frozen() && printed_high_ > 0;
    });
    const bool ignored = shared_.mutant == NodeMutant::kPutBackIgnored;
    Require(ignored || Frozen(), 9, "a registry that was put back does not freeze the cluster");
  }
  shared_.rates = rates;
  shared_.cuts_one_in = cuts_one_in;
}

// Restores as an operator who pastes a command that servers print now, or printed when they
// detected the older registry. By now, servers may be down or may have lost the information.
void NodeWorld::Restore() {
  registry_clock_.SetRight();  // as the runbook says: the floor depends on it
  MemoryCoordinator memory(tree_);
  BlockingCoordinator registry(memory, clock_);
  RestoreFacts facts{.now = clock_.Wall(), .window = shared_.window};
  for (const auto& host : hosts_) {
    if (const auto report = host->Report()) AddReport(*report, facts);
  }
  const int64_t high = std::max(printed_high_, HighestReported());
  facts.tags = [&](const MetaAsRead&) {
    StoredTag stored = *TagStore(registry).Read(kNumbers);
    stored.node.tag.high = std::max(stored.node.tag.high, high);
    const std::string data = *WriteTagNode(stored.node);
    return registry.Multi({Write::Set(TagPath(kNumbers), data, stored.stat.version)}).status;
  };
  const bool restored =
      registry.Connect(Milliseconds(0)).ok() && RestoreCluster(registry, facts, dice_).ok();
  shared_.Trace(restored ? "the cluster is restored" : "the cluster is not restored");
}

}  // namespace firn
