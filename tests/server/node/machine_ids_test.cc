// One process with several machine ids, with a registry in memory and the machine's own clocks.

#include "server/node/machine_ids.h"

#include <latch>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "common/id/rack_split.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/state/posix_state_folder.h"
#include "server/node/open_node.h"
#include "tests/support/process.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class MachineIdsTest : public testing::Test {
 protected:
  MachineIdsTest() {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, SystemClock());
    EXPECT_TRUE(registry.Connect(kPatience).ok());
    EXPECT_TRUE(MakeCluster(registry, {}, entropy_).ok());
  }

  std::unique_ptr<StateFolder> Folder(size_t number) {
    std::string stem = "test:7609:2130706433";
    if (number > 0) stem += Cat(".", number + 1);
    auto folder = PosixStateFolder::Open(
        {.folder = folder_.path(), .stem = std::move(stem), .grant_dir = memory_.path()});
    EXPECT_TRUE(folder.ok()) << folder.status();
    return *std::move(folder);
  }

  // Waits until it holds them all.
  std::unique_ptr<IssuingNode> Start(size_t count, Milliseconds window = Milliseconds(600'000)) {
    NodeParts ground{.folder = Folder(0), .kept = nullptr};
    for (size_t i = 1; i < count; ++i) ground.more_folders.push_back(Folder(i));
    ground.open = [this](const std::string&, const OpenOptions&, const Clock&, Entropy&) {
      return std::unique_ptr<Coordinator>(std::make_unique<MemoryCoordinator>(tree_));
    };
    IssuingNodeOptions options;
    options.claim.identity = {.owner = "", .endpoint = "127.0.0.1:7609", .host = "localhost"};
    options.claim.window = window;
    auto node = OpenNodeOn(
        std::move(ground), {.registry = "zk://memory", .credentials = {}, .state_dir = {}},
        *OwnerName::Make("test", 7609, "127.0.0.1"), options, SystemClock(), entropy_);
    EXPECT_TRUE(node.ok()) << node.status();
    EXPECT_TRUE((*node)->Start().ok());
    EXPECT_TRUE(Eventually(kPatience, [&] { return Machines(**node).size() == count; }));
    EXPECT_TRUE((*node)->WaitUntilServing(kPatience).ok());
    return *std::move(node);
  }

  // The machine ids that it holds now, in its order.
  static std::vector<MachineId> Machines(const IssuingNode& node) {
    std::vector<MachineId> held;
    for (const ClaimStatus& claim : node.status().claims) {
      if (claim.machine) held.push_back(*claim.machine);
    }
    return held;
  }
  static std::set<MachineId> SetOf(const std::vector<MachineId>& machines) {
    return {machines.begin(), machines.end()};
  }

  static int64_t Take(IssuingNode& node, int64_t count = 1) {
    IssueCall call(*node.issuer().Resolve("default"), {.tag = "default", .count = count});
    const bool issued =
        Eventually(kPatience, [&] { return node.issuer().Issue(call) == Verdict::kIssued; });
    EXPECT_TRUE(issued) << call.refusal();
    return issued ? call.runs()[0].first : 0;
  }
  static MachineId MachineOf(int64_t id) { return Layout::Firn().Unpack(id)->machine; }

  Slot SlotOf(MachineId machine) {
    const RackSplit split = RackSplit::Default(Layout::Firn());
    return {.rack = split.RackOf(machine), .worker = split.WorkerOf(machine)};
  }
  SlotRecord RecordOf(MachineId machine) {
    return *ParseSlotRecord(tree_.Peek(SlotPath(SlotOf(machine)))->data);
  }
  // Another holder is in the slot, as after a registry that went back in time.
  void Rob(MachineId machine) {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    SlotRecord record = RecordOf(machine);
    record.nonce = Nonce::Draw(entropy_);
    record.owner = "a robber";
    record.bound = record.bound + Milliseconds(3'600'000);
    ASSERT_TRUE(registry
                    .Multi({Write::Set(SlotPath(SlotOf(machine)), FormatSlotRecord(record),
                                       Write::kAnyVersion)})
                    .status.ok());
  }

  SeededEntropy entropy_{3};
  TempDir folder_;
  TempDir memory_{kMemoryDir};
  MemoryTree tree_{SystemClock()};
};

TEST_F(MachineIdsTest, HoldsEachMachineIdUnderItsOwnName) {
  const auto node = Start(3);
  const std::vector<MachineId> machines = Machines(*node);
  EXPECT_EQ(SetOf(machines).size(), 3u);
  std::set<std::string> owners;
  for (const MachineId machine : machines) owners.insert(RecordOf(machine).owner);
  EXPECT_EQ(owners.size(), 3u);
  EXPECT_EQ(node->status().claim.machine, machines.front());
}

TEST_F(MachineIdsTest, IssuesUnderAllMachineIds) {
  const auto node = Start(3);
  std::set<MachineId> used;
  std::mutex mutex;
  std::latch all_there(3);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      const MachineId own = MachineOf(Take(*node));
      {
        const std::scoped_lock lock(mutex);
        used.insert(own);
      }
      all_there.arrive_and_wait();  // until each thread has its lane
    });
  }
  threads.clear();
  EXPECT_EQ(used, SetOf(Machines(*node)));
}

TEST_F(MachineIdsTest, ReleasesAllMachineIdsAboveEverythingIssued) {
  const auto node = Start(3);
  const std::vector<MachineId> machines = Machines(*node);
  const Tick tick = Layout::Firn().Unpack(Take(*node))->tick;
  const MachineId issued = MachineOf(Take(*node));
  node->Stop();
  for (const MachineId machine : machines) EXPECT_TRUE(RecordOf(machine).nonce.zero());
  EXPECT_GT(RecordOf(issued).bound, Layout::Firn().StartOf(tick));
  EXPECT_EQ(node->status().claim.state, ClaimState::kReleased);
}

TEST_F(MachineIdsTest, ARestartWithMoreOrFewerMachineIdsKeepsTheOldOnes) {
  auto node = Start(2);
  const std::vector<MachineId> two = Machines(*node);
  int64_t highest = Take(*node);
  const auto restart = [&](size_t count) {
    node->Stop();
    node.reset();
    node = Start(count);
    const int64_t id = Take(*node);
    EXPECT_GT(Layout::Firn().Unpack(id)->tick, Layout::Firn().Unpack(highest)->tick);
    highest = id;
  };
  restart(1);
  EXPECT_EQ(Machines(*node), std::vector<MachineId>{two[0]});
  restart(4);
  const std::vector<MachineId> four = Machines(*node);
  EXPECT_EQ(four[0], two[0]);
  EXPECT_EQ(four[1], two[1]);
  EXPECT_EQ(SetOf(four).size(), 4u);
  restart(2);
  EXPECT_EQ(Machines(*node), two);
}

TEST_F(MachineIdsTest, ALostMachineIdDoesNotStopTheOthers) {
  const auto node = Start(3, Milliseconds(2'000));
  const std::vector<MachineId> before = Machines(*node);
  Rob(before[1]);
  // Every call is served meanwhile, and in the end there are three again, one of them new.
  ASSERT_TRUE(Eventually(kPatience, [&] {
    Take(*node);
    const std::vector<MachineId> now = Machines(*node);
    return now.size() == 3 && now[1] != before[1];
  }));
  const std::vector<MachineId> after = Machines(*node);
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[2], before[2]);
  EXPECT_FALSE(node->status().why_not_ready.has_value());
  for (int i = 0; i < 20'000; ++i) EXPECT_NE(MachineOf(Take(*node)), before[1]);
}

// --- the shared id clock -------------------------------------------------------------------------

class SharedIdClockTest : public testing::Test {
 protected:
  ClaimBridge& AddBridge() {
    lanes_.push_back(std::make_unique<Snowflake>(ticks_, entropy_));
    bridges_.push_back(std::make_unique<ClaimBridge>(*lanes_.back(), ticks_, use_));
    return *bridges_.back();
  }
  std::shared_ptr<Claim> ClaimFrom(WallMs base) {
    auto claim = std::make_shared<Claim>(layout_, MachineId(1), base);
    claim->ExtendTo(base + kAnHour);
    return claim;
  }
  WallMs SetBack(ClaimBridge& bridge) {
    return bridge.SetIdClock(clock_.Wall() - kAnHour, clock_.Read());
  }

  const Layout layout_ = Layout::Firn();
  VirtualClock clock_{layout_.epoch() + Milliseconds(1'000'000'000)};
  IdClock id_clock_;
  TickSource ticks_{layout_, id_clock_, clock_, /*use_cycles=*/false};
  SeededEntropy entropy_{11};
  IdClockUse use_;
  std::vector<std::unique_ptr<Snowflake>> lanes_;
  std::vector<std::unique_ptr<ClaimBridge>> bridges_;
};

TEST_F(SharedIdClockTest, IsNotSetWhileASiblingHasAClaim) {
  ClaimBridge& holder = AddBridge();
  ClaimBridge& other = AddBridge();
  EXPECT_EQ(SetBack(other), clock_.Wall() - kAnHour);
  holder.SetIdClock(clock_.Wall(), clock_.Read());
  holder.Adopt(ClaimFrom(clock_.Wall()));
  EXPECT_EQ(SetBack(other), clock_.Wall());
  EXPECT_EQ(id_clock_.Last(), clock_.Wall());
  holder.Close();
  EXPECT_EQ(SetBack(other), clock_.Wall() - kAnHour) << "no id was issued under the claim";
}

TEST_F(SharedIdClockTest, IsNotSetOnceASiblingHasIssued) {
  ClaimBridge& holder = AddBridge();
  ClaimBridge& other = AddBridge();
  holder.Adopt(ClaimFrom(clock_.Wall()));
  int64_t id = 0;
  ASSERT_TRUE(lanes_.front()->TryOne(Method::kEmbedded, &id));
  holder.Close();
  EXPECT_EQ(SetBack(other), clock_.Wall());
}

// --- joint status --------------------------------------------------------------------------------

ClaimStatus In(ClaimState state, WallMs bound = WallMs()) {
  ClaimStatus status;
  status.state = state;
  status.bound = bound;
  return status;
}

ClaimStatus Held(uint32_t machine, WallMs bound) {
  ClaimStatus status = In(ClaimState::kHolding, bound);
  status.machine = MachineId(machine);
  return status;
}

TEST(Together, ReportsTheFirstHeldMachineIdWithTheHighestBound) {
  ClaimStatus lost = In(ClaimState::kSeeking, WallMs(900));
  lost.reason = "it was lost";
  const ClaimStatus all = Together({lost, Held(5, WallMs(700)), Held(6, WallMs(800))});
  EXPECT_EQ(all.machine, MachineId(5));
  EXPECT_EQ(all.state, ClaimState::kHolding);
  EXPECT_EQ(all.bound, WallMs(900));
  EXPECT_EQ(all.reason, "2 of 3 machine ids are held: it was lost");
}

TEST(Together, IsReleasedOnlyIfAllMachineIdsAre) {
  const ClaimStatus released = In(ClaimState::kReleased), releasing = In(ClaimState::kReleasing);
  EXPECT_EQ(Together({released, releasing}).state, ClaimState::kReleasing);
  EXPECT_EQ(Together({released, released}).state, ClaimState::kReleased);
}

}  // namespace
}  // namespace firn
