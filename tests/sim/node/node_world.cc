#include "tests/sim/node/node_world.h"

#include <algorithm>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/sim/sim_sizes.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

// Maximum time until service returns after the end of all faults. Under the policy strict, hosts
// wait until their clocks have reached the floor of the last restore.
constexpr Milliseconds kServiceWithin{30 * 60'000}, kStrictServiceWithin{90 * 60'000};
constexpr Milliseconds kFineUntil{60'000};
constexpr int kRoundsALook = 50;

bool IsStatic(NodeMutant mutant, SeededEntropy& dice) {
  if (mutant == NodeMutant::kNone) return dice.Below(3) == 0;
  return mutant == NodeMutant::kCopyTrusted || mutant == NodeMutant::kGrantNotSynced ||
         mutant == NodeMutant::kPairUnheard || mutant == NodeMutant::kMountIsAnotherFile;
}

}  // namespace

NodeWorld::NodeWorld(uint64_t seed, NodeMutant mutant, const SimArguments& arguments)
    : dice_(seed),
      clock_(kSimStart, BootMs(1)),
      registry_clock_(clock_),
      tree_(registry_clock_),
      shared_{.clock = clock_,
              .tree = tree_,
              .oracle = oracle_,
              .dice = dice_,
              .mutant = mutant,
              .trace = arguments.trace,
              .is_static = IsStatic(mutant, dice_)} {
  DrawSizes();
  shared_.pass = [this](Milliseconds wait) { Pass(wait); };
  shared_.is_static || shared_.is_directory ? MakeDefaultOnly() : MakeCluster();
  for (int i = 0; i < first_hosts_; ++i) {
    hosts_.push_back(std::make_unique<NodeHost>(shared_, i, static_cast<uint32_t>(i)));
  }
}

NodeWorld::~NodeWorld() = default;

SimCounts NodeWorld::Counts() const {
  return {{"steps", static_cast<int64_t>(steps_)}, {"ids", static_cast<int64_t>(oracle_.ids())}};
}

void NodeWorld::DrawSizes() {
  static constexpr const char* kLayouts[] = {"firn", "firn",
                                             "time:41 machine:10 sequence:3 epoch:2024-01-01"};
  const auto below = [this](uint64_t n) { return static_cast<int>(dice_.Below(n)); };
  layout_ = kLayouts[dice_.Below(3)];
  rack_bits_ = OneIn(2) ? RackSplit::Default(*Layout::Parse(layout_)).rack_bits() : 0;
  shared_.is_directory = !shared_.is_static && shared_.mutant == NodeMutant::kNone && OneIn(4);
  if (shared_.is_static || shared_.is_directory || OneIn(4)) shared_.given_layout = layout_;
  first_hosts_ = 1 + below(4);
  const bool several = shared_.mutant == NodeMutant::kGrantShared || OneIn(2);
  if (!shared_.is_static && several) shared_.machine_ids_max = 2 + dice_.Below(3);
  wanted_steps_ = 1'000 + below(6'000);
  fault_every_ = 20 + dice_.Below(300);
  const bool puts_back = shared_.mutant == NodeMutant::kNone
                             ? OneIn(3)
                             : shared_.mutant == NodeMutant::kPutBackIgnored;
  if (puts_back && !shared_.is_static && !shared_.is_directory) {
    put_back_at_ = 1 + dice_.Below(static_cast<uint64_t>(wanted_steps_));
  }
  shared_.strict = OneIn(10);
  shared_.window = Milliseconds(OneIn(2) ? 20'000 : 60'000);
  shared_.cuts_one_in = OneIn(2) ? 0 : 1 + dice_.Below(8);
  if (OneIn(4)) return;  // a registry without faults
  shared_.rates = {.refused = below(30),
                   .request_lost = below(40),
                   .answer_lost = below(60),
                   .late = below(60),
                   .delayed = below(500),
                   .notice_lost = 0,
                   .delay_max = Milliseconds(10 + below(500)),
                   .late_max = Milliseconds(100 + below(10'000)),
                   .time_limit = Milliseconds(200 + below(2'000))};
}

// Sets up a world without operator-defined tags, which has only `default`.
void NodeWorld::MakeDefaultOnly() {
  shared_.probe = "default";
  shared_.tags = {"default", "never"};
  oracle_.Define({.name = "default", .strategy = "snowflake"}, "0");
  served_tags_ = 1;
}

void NodeWorld::MakeCluster() {
  MemoryCoordinator memory(tree_);
  BlockingCoordinator registry(memory, clock_);
  const ClusterPlan plan{
      .layout = *Layout::Parse(layout_),
      .rack_bits = rack_bits_,
      .workers = static_cast<uint32_t>(
          static_cast<uint64_t>(first_hosts_) * shared_.machine_ids_max + dice_.Below(3))};
  if (!registry.Connect(Milliseconds(0)).ok()) Die("no registry to simulate");
  if (!firn::MakeCluster(registry, plan, dice_).ok()) Die("no cluster to simulate");
  MakeTags(registry);
}

// Defines `default` in one of several forms, before any id of it was issued.
void NodeWorld::MakeTags(BlockingCoordinator& registry) {
  TagStore store(registry);
  StoredTag first = *store.Read(kFirstTag);
  TagDefinition tag = first.tag();
  if (OneIn(2)) tag.text = "d{id:03}";
  tag.disabled = OneIn(4);
  // Ids of a plain tag may be issued from the start, so its form is set when it is created.
  if (!registry.Multi({Write::Erase("/tags/default", Write::kAnyVersion)}).status.ok()) {
    Die("no default");
  }
  if (!store.Create(tag).ok()) Die("no default");
  oracle_.Define(tag, tag.text.empty() ? "0" : "d000");
  TagDefinition numbers{.name = "numbers", .strategy = "segment"};
  numbers.step = 1 + static_cast<int64_t>(dice_.Below(40));
  numbers.step_max = numbers.step * 8;
  if (OneIn(2)) numbers.text = "n{id:04}";
  const TagDefinition probe{.name = "probe", .strategy = "snowflake"};
  if (!store.Create(probe).ok()) Die("no probe");
  oracle_.Define(probe, "0");
  shared_.probe = "probe";
  shared_.tags = {"default", "probe", "never"};
  served_tags_ = tag.disabled ? 1 : 2;
  // While a ledger changes, definitions are cached again within a minute, which would hide this
  // mutant.
  if (shared_.mutant == NodeMutant::kFullDiskUntold) return;
  if (!store.Create(numbers).ok()) Die("no numbers");
  oracle_.Define(numbers, numbers.text.empty() ? "0" : "n0000");
  shared_.tags.emplace_back("numbers");
  ++served_tags_;
}

std::string NodeWorld::text() const {
  return std::to_string(hosts_.size()) + (shared_.is_static ? " static hosts" : " hosts") +
         " of up to " + std::to_string(shared_.machine_ids_max) + " machine ids, layout " +
         layout_ + ", a fault in " + std::to_string(fault_every_) + " steps" +
         (shared_.strict ? ", strict" : "") + (shared_.is_directory ? ", a directory" : "");
}

// --- time and ordinary life ----------------------------------------------------------------------

void NodeWorld::Run() {
  for (const auto& host : hosts_) host->Start(!OneIn(6));
  while (steps_ < static_cast<uint64_t>(wanted_steps_)) Step();
  if (!lost_) DemandService();
}

void NodeWorld::Step() {
  ++steps_;
  PassTime();
  if (put_back_at_ != 0 && steps_ >= put_back_at_) {
    put_back_at_ = 0;
    return PutBackRegistry();
  }
  if (put_back_ && OneIn(100) && Frozen()) Restore();
  if (OneIn(fault_every_)) return Strike();
  NodeHost& host = AnyHost();
  if (host.paused_until > clock_.Boot()) return;
  host.RunGhost();
  if (!host.up()) {
    if (OneIn(20)) host.Start(!outage_ && !OneIn(4));
    return;
  }
  if (!outage_ && OneIn(100)) host.Reconnect();
  if (dice_.Below(10) >= 4) host.Round();
  host.Serve();
}

void NodeWorld::PassTime() {
  const uint64_t dice = dice_.Below(1'000);
  if (dice < 300) return;
  if (dice < 900) return clock_.Advance(UpTo(20));
  if (dice < 985) return clock_.Advance(UpTo(300));
  clock_.Advance(dice < 998 ? UpTo(3'000) : UpTo(40'000));
  ExpireSessions();
}

// Lets time pass while a host waits for its cluster; the other hosts continue.
void NodeWorld::Pass(Milliseconds wait) {
  clock_.Advance(std::min(wait, Milliseconds(20)));
  if (std::exchange(passing_, true)) return;
  for (const auto& host : hosts_) {
    if (!OneIn(3) || host->paused_until > clock_.Boot()) continue;
    host->Round();
    host->Serve();
  }
  passing_ = false;
}

// --- the end of all faults -----------------------------------------------------------------------

// Returns whether all hosts have served all their tags since the last check, and have cached them
// for the next start. Excludes copies that must not run.
bool NodeWorld::AllServe() {
  bool all = true;
  for (const auto& host : hosts_) {
    const bool serves = host->TagsServed() >= served_tags_;
    const bool keeps = shared_.is_static || !host->disk().tags.empty();
    all &= host->retired() || host->is_copy() || (serves && keeps && host->HoldsAll());
  }
  return all;
}

void NodeWorld::DemandService() {
  shared_.Trace("no more faults");
  shared_.rates = {};
  shared_.cuts_one_in = 0;
  outage_ = false;
  registry_clock_.SetRight();
  for (const auto& host : hosts_) {
    host->EndFaults();
    // Restarts hosts that were permanently refused, now that all faults are over, and hosts without
    // a complete directory, since only a start completes it.
    if (shared_.is_static || shared_.is_directory) host->Kill();
    host->TagsServed();
  }
  const BootMs begin = clock_.Boot();
  const BootMs limit = begin + (shared_.strict ? kStrictServiceWithin : kServiceWithin);
  for (int round = 1; clock_.Boot() < limit; ++round) {
    clock_.Advance(Milliseconds(clock_.Boot() < begin + kFineUntil ? 50 : 1'000));
    ExpireSessions();
    for (const auto& host : hosts_) {
      ++steps_;
      host->RunGhost();
      host->Start(true);
      host->Round();
      host->Serve();
      host->Serve();
    }
    if (round % kRoundsALook != 0) continue;
    if (put_back_ && Frozen()) Restore();
    if (AllServe()) return;
  }
  std::string states;
  for (const auto& host : hosts_) states += "\n  " + host->Status();
  throw Violation(6, "no service after the end of all faults" + states);
}

}  // namespace firn
