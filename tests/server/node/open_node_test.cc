// A node on a real ZooKeeper, under clocks that a test moves.

#include "server/node/open_node.h"

#include <atomic>
#include <set>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "server/node_view.h"
#include "server/server_listing.h"
#include "tests/server/front/leases/scripted_leases.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

// The machine's clocks, set ahead.
class ShiftedClock final : public Clock {
 public:
  WallMs Wall() const override { return SystemClock().Wall() + Milliseconds(wall_.load()); }
  BootMs Boot() const override { return SystemClock().Boot() + Milliseconds(boot_.load()); }
  // Lets time pass.
  void Advance(Milliseconds d) {
    boot_ += d.count();
    wall_ += d.count();
  }
  void StepWall(Milliseconds d) { wall_ += d.count(); }

 private:
  std::atomic<int64_t> wall_{0}, boot_{0};
};

class OpenNodeTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
  }
  static void TearDownTestSuite() { zookeeper_.reset(); }

  // The cluster of this test.
  static std::string Registry() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    return "zk://" + zookeeper_->hosts() + "/firn/" + test->name();
  }
  static void Make(const ClusterPlan& plan) {
    const auto coordinator = OpenCoordinator(Registry(), {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    ASSERT_TRUE(registry.PrepareRoot().ok());
    const Status made = MakeCluster(registry, plan, SystemEntropy());
    ASSERT_TRUE(made.ok()) << made;
  }

  Result<std::unique_ptr<IssuingNode>> Open(IssuingNodeOptions options = {}) {
    options.claim.identity.endpoint = "127.0.0.1:7609";
    const NodePlace place{.registry = Registry(), .credentials = {}, .state_dir = dir_ / "state"};
    const OwnerName owner = *OwnerName::Make("test", 7609, "127.0.0.1");
    FIRN_ASSIGN(NodeParts parts, OpenParts(place, owner, options.claim));
    return OpenNodeOn(std::move(parts), place, owner, std::move(options), clock_, SystemEntropy());
  }
  std::unique_ptr<IssuingNode> Serving(IssuingNodeOptions options = {}) {
    auto node = Open(std::move(options));
    EXPECT_TRUE(node.ok()) << node.status();
    EXPECT_TRUE((*node)->Start().ok());
    const Status serving = (*node)->WaitUntilServing(kPatience);
    EXPECT_TRUE(serving.ok()) << serving;
    return *std::move(node);
  }

  static ServerOptions OptionsOfAServer() {
    return {.place = {},
            .listen = {},
            .advertise = {},
            .owner = *OwnerName::Make("test", 1, "127.0.0.1"),
            .application = "test",
            .key_dir = {}};
  }

  TempDir dir_;
  ShiftedClock clock_;
  static std::unique_ptr<ZooKeeper> zookeeper_;
};

std::unique_ptr<ZooKeeper> OpenNodeTest::zookeeper_;

TEST_F(OpenNodeTest, DoesNotFollowAWallClockFarAheadOfZooKeepers) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 2}));
  const auto node = Serving();
  const WallMs begun = node->status().id_clock.time;
  clock_.StepWall(30 * kADay);
  ASSERT_TRUE(Eventually(kPatience, [&] { return node->status().id_clock.jump_held; }));
  // Longer than an uncontradicted jump of the clock is held back.
  for (int i = 0; i < 10; ++i) {
    const WallMs before = node->status().id_clock.time;
    clock_.Advance(Milliseconds(10'000));
    ASSERT_TRUE(Eventually(
        kPatience, [&] { return node->status().id_clock.time >= before + Milliseconds(10'000); }));
  }
  const IssuingNodeStatus status = node->status();
  EXPECT_LT(status.id_clock.time, begun + kADay);
  EXPECT_LT(status.claim.bound, begun + kADay);
}

TEST_F(OpenNodeTest, ServesARackOfTheCluster) {
  ASSERT_NO_FATAL_FAILURE(Make({.rack_bits = 4, .workers = 2}));
  IssuingNodeOptions options;
  options.claim.rack = 7;
  const auto node = Serving(options);
  EXPECT_EQ(node->split().RackOf(*node->status().claim.machine), 7u);
}

TEST_F(OpenNodeTest, RefusesARackThatTheClusterLacks) {
  ASSERT_NO_FATAL_FAILURE(Make({.rack_bits = 4, .workers = 2}));
  IssuingNodeOptions options;
  options.claim.rack = 16;
  EXPECT_EQ(Open(options).code(), Code::kInvalid);
}

TEST_F(OpenNodeTest, ANodeAtItsBoundIsNotReady) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 2}));
  const auto node = Serving();
  OperatorSetting operators(node->loop().coordinator(), SystemEntropy(), "127.0.0.1:7609");
  const ServerOptions options = OptionsOfAServer();
  const ServerListing listing(node->loop().coordinator(), "test", std::nullopt, clock_);
  const RootKeeper root(node->loop().coordinator(), SystemEntropy(), "");
  NodeView view(options, *node, operators, listing, root, clock_);
  // Each change shows in the version, by which answers about the server are cached.
  std::set<uint64_t> versions{view.version()};
  view.OnTag({.name = "order", .strategy = "snowflake"});
  EXPECT_TRUE(versions.insert(view.version()).second);
  EXPECT_EQ(view.Report().tags.size(), 1u);
  view.OnTagDeleted("order");
  EXPECT_TRUE(versions.insert(view.version()).second);
  zookeeper_->KillAll();
  ASSERT_TRUE(Eventually(kPatience, [&] { return !node->status().claim.connected; }));
  EXPECT_EQ(view.phase(), ServerPhase::kReady);
  EXPECT_TRUE(versions.insert(view.version()).second);
  EXPECT_EQ(view.ForProviders().phase, ServerPhase::kReady);
  const WallMs bound = node->status().claim.bound;
  clock_.Advance(node->status().claim.left + Milliseconds(1'000));
  ASSERT_TRUE(Eventually(kPatience, [&] { return node->status().claim.left == Milliseconds(0); }));
  EXPECT_TRUE(Eventually(kPatience, [&] {
    clock_.Advance(Milliseconds(100));  // until the fault has lasted long enough
    return view.phase() == ServerPhase::kNotReady;
  }));
  EXPECT_TRUE(versions.insert(view.version()).second);
  EXPECT_EQ(view.ForProviders().phase, ServerPhase::kNotReady);
  EXPECT_EQ(node->status().claim.bound, bound);
  view.Drain();
  EXPECT_TRUE(versions.insert(view.version()).second);
  ASSERT_TRUE(zookeeper_->RestartAll().ok());
}

// The cluster was frozen before the server had read the root node's settings.
TEST_F(OpenNodeTest, TheRestoreCommandHasTheLayoutIfTheSettingsAreUnread) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 2, .default_strategy = "snowflake"}));
  const auto node = Serving();
  OperatorSetting operators(node->loop().coordinator(), SystemEntropy(), "127.0.0.1:7609");
  const ServerOptions options = OptionsOfAServer();
  const ServerListing listing(node->loop().coordinator(), "test", std::nullopt, clock_);
  const RootKeeper root(node->loop().coordinator(), SystemEntropy(), "");
  NodeView view(options, *node, operators, listing, root, clock_);
  {
    const auto coordinator = OpenCoordinator(Registry(), {}, SystemClock(), SystemEntropy());
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    MetaAsRead frozen = *ReadMeta(registry);
    frozen.meta.frozen = true;
    ASSERT_TRUE(SetMeta(registry, frozen).ok());
  }
  std::string command;
  EXPECT_TRUE(Eventually(kPatience, [&] { return !(command = view.RepairCommand()).empty(); }));
  EXPECT_NE(command.find(" --layout=firn --rack_bits="), command.npos) << command;
  front::ScriptedLeases leases;
  leases.shown = {{.machine = MachineId(5), .bound = clock_.Wall()}};
  view.SetLeases(leases);
  const Result<Backup> known = ParseBackup(view.knowledge());
  ASSERT_TRUE(known.ok()) << known.status();
  EXPECT_EQ(known->bounds.back(), std::pair(MachineId(5), leases.shown.front().bound));
  EXPECT_EQ(known->root.uuid, node->status().claim.uuid);
  EXPECT_EQ(known->root.layout, "firn");
  EXPECT_FALSE(known->settings_known);
}

// A server reads its other files there only after this lock.
TEST(OpenPartsTest, LocksTheStateFolder) {
  const TempDir dir;
  const NodePlace place{
      .registry = "zk://h:2181/firn/shop", .credentials = {}, .state_dir = dir / "state"};
  const OwnerName owner = *OwnerName::Make("test", 7609, "127.0.0.1");
  const auto first = OpenParts(place, owner, {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(OpenParts(place, owner, {}).code(), Code::kConflict);
}

TEST(CheckStateFileSystemTest, AStaticMachineIdRequiresALocalDisk) {
  NodePlace place{.registry = "static:3", .credentials = {}, .state_dir = "/net/state"};
  EXPECT_TRUE(CheckStateFileSystem(place, "").ok());
  const Status refused = CheckStateFileSystem(place, "NFS");
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.message().find("/net/state lies on NFS"), std::string::npos) << refused;
  place.registry = "zk://h:2181/firn/shop";
  EXPECT_TRUE(CheckStateFileSystem(place, "NFS").ok());
}

}  // namespace
}  // namespace firn
