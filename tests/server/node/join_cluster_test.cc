#include "server/node/join_cluster.h"

#include <gtest/gtest.h>

#include "common/log/log.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/state/hint.h"
#include "server/node/kept_root.h"
#include "tests/support/process.h"
#include "tests/support/registry/memory_state_folder.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr const char* kUuid = "6f1b0a52-6c1d-4a3e-9f0b-2d9a3f1e8c47";

// A program that joins the cluster in a directory, or in a ZooKeeper that is unreachable.
class JoinClusterTest : public testing::Test {
 protected:
  ClusterPlace Directory() { return {.registry = "dir://" + (dir_ / "registry")}; }
  static ClusterPlace ZooKeeperThatIsAway() {
    return {.registry = "zk://127.0.0.1:" + std::to_string(FreePort()) + "/firn/test"};
  }

  Result<JoinedCluster> Join(const ClusterPlace& place) {
    MemoryStateFolder folder(disk_);
    return JoinCluster(place, folder, SystemClock(), SystemEntropy());
  }

  void Make(const ClusterPlan& plan) {
    const auto coordinator =
        OpenCoordinator(Directory().registry, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kPatience).ok());
    const Status made = MakeCluster(registry, plan, SystemEntropy());
    ASSERT_TRUE(made.ok()) << made;
  }

  void Remember(const Layout& layout) {
    disk_.hint = FormatHint({.machine = 5,
                             .slot = {.rack = 1, .worker = 1},
                             .uuid = kUuid,
                             .layout = std::string(layout.text())});
  }

  TempDir dir_;
  MemoryDisk disk_;
};

TEST_F(JoinClusterTest, CreatesAClusterInAnEmptyDirectory) {
  const auto first = Join(Directory());
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->layout, Layout::Firn());
  EXPECT_EQ(first->split, RackSplit::Default(Layout::Firn()));
  EXPECT_FALSE(first->uuid.empty());
  EXPECT_EQ(Join(Directory())->uuid, first->uuid) << "the next server joins it";
}

TEST_F(JoinClusterTest, WarnsOfADirectoryInMemory) {
  static std::string logged;
  SendLogTo([](const LogEntry& entry) { logged += entry.text; });
  const TempDir memory(kMemoryDir), disk(kDiskDir);
  const auto on_disk = Join({.registry = "dir://" + (disk / "registry")});
  EXPECT_EQ(logged.find("in memory"), std::string::npos) << logged;
  const auto in_memory = Join({.registry = "dir://" + (memory / "registry")});
  SendLogTo(nullptr);
  ASSERT_TRUE(on_disk.ok() && in_memory.ok()) << on_disk.status() << in_memory.status();
  EXPECT_NE(logged.find("a reboot loses it"), std::string::npos) << logged;
}

TEST_F(JoinClusterTest, ReturnsAConnectedCoordinator) {
  const auto joined = Join(Directory());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_NE(joined->session, 0);
  EXPECT_EQ(joined->session, joined->coordinator->session());
}

TEST_F(JoinClusterTest, ANewClusterHasTheRequestedLayoutAndWorkers) {
  ClusterPlace place = Directory();
  place.layout = Layout::Twitter();
  place.workers_min = 20;
  auto joined = Join(place);
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->layout, Layout::Twitter());
  BlockingCoordinator registry(*joined->coordinator, SystemClock());
  EXPECT_TRUE(registry.Read(SlotPath({.rack = 0, .worker = 19})).ok());
  EXPECT_EQ(registry.Read(SlotPath({.rack = 0, .worker = 20})).code(), Code::kNotFound);
}

TEST_F(JoinClusterTest, UsesTheLayoutAndRacksOfTheCluster) {
  ASSERT_NO_FATAL_FAILURE(Make({.layout = Layout::Twitter(), .rack_bits = 4, .workers = 1}));
  const auto joined = Join(Directory());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->layout, Layout::Twitter());
  EXPECT_EQ(joined->split.rack_bits(), 4);
}

// The claim refuses the other one, and the command that is printed restores the remembered one.
TEST_F(JoinClusterTest, StaysInTheRememberedClusterIfAnotherOneHasReplacedIt) {
  ASSERT_NO_FATAL_FAILURE(Make({.layout = Layout::Twitter(), .workers = 1}));
  Remember(Layout::Firn());
  const auto joined = Join(Directory());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->uuid, kUuid);
  EXPECT_EQ(joined->layout, Layout::Firn());
  EXPECT_FALSE(joined->known) << "its layout is read once it is restored";
}

TEST_F(JoinClusterTest, RefusesAClusterOfAnotherLayout) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 1}));
  ClusterPlace place = Directory();
  place.layout = Layout::Twitter();
  const auto refused = Join(place);
  EXPECT_EQ(refused.code(), Code::kInvalid) << refused.status();
  EXPECT_NE(refused.status().message().find("twitter"), std::string::npos) << refused.status();
}

TEST_F(JoinClusterTest, RefusesAClusterWhoseLayoutHasChanged) {
  Make({.layout = Layout::Twitter(), .workers = 4u, .uuid = kUuid});
  Remember(Layout::Firn());
  const auto joined = Join(Directory());
  EXPECT_EQ(joined.code(), Code::kInvalid);
  EXPECT_NE(joined.status().message().find("twitter"), std::string::npos) << joined.status();
  Remember(Layout::Twitter());
  EXPECT_TRUE(Join(Directory()).ok());
}

TEST_F(JoinClusterTest, DoesNotRecreateALostDirectoryOfARememberedCluster) {
  Remember(Layout::Firn());
  const auto refused = Join(Directory());
  EXPECT_EQ(refused.code(), Code::kConflict) << refused.status();
  for (const char* word : {kUuid, "firn restore"}) {
    EXPECT_NE(refused.status().message().find(word), std::string::npos) << refused.status();
  }
}

TEST_F(JoinClusterTest, PrintsTheRestoreCommandOfALostDirectory) {
  Remember(Layout::Firn());
  ClusterPlace place = Directory();
  place.kept_stem = dir_ / "state";
  const std::string command = "firn restore --registry=" + place.registry +
                              " --from=" + dir_.path().string() + " --uuid=" + kUuid;
  const auto unread = Join(place);
  EXPECT_NE(unread.status().message().find(command + " --layout=firn"), std::string::npos)
      << unread.status();
  ASSERT_TRUE(
      WriteKeptRoot(place.kept_stem, {.uuid = kUuid, .layout = "firn", .rack_bits = 4}).ok());
  const auto refused = Join(place);
  EXPECT_TRUE(refused.status().message().ends_with(command)) << refused.status();
}

TEST_F(JoinClusterTest, RefusesAStateFolderOfAnotherFormat) {
  Remember(Layout::Firn());
  disk_.hint->replace(disk_.hint->find("format=2\n"), 9, "");
  const auto refused = Join(ZooKeeperThatIsAway());
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.status().message().find("Firn 0.1"), std::string::npos) << refused.status();
}

TEST_F(JoinClusterTest, RefusesAClusterOfAnotherFormat) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 1}));
  for (const int64_t format : {1, 3}) {
    {
      auto coordinator = OpenCoordinator(Directory().registry, {}, SystemClock(), SystemEntropy());
      BlockingCoordinator registry(**coordinator, SystemClock());
      ASSERT_TRUE(registry.Connect(kPatience).ok());
      const std::string root = "{\"format\":" + std::to_string(format) + "}";
      ASSERT_TRUE(registry.Multi({Write::Set("/", root, Write::kAnyVersion)}).status.ok());
    }
    const auto refused = Join(Directory());
    EXPECT_EQ(refused.code(), Code::kInvalid) << refused.status();
    EXPECT_NE(refused.status().message().find("format " + std::to_string(format)),
              std::string::npos)
        << refused.status();
  }
}

TEST_F(JoinClusterTest, CompletesAHalfCreatedCluster) {
  ASSERT_NO_FATAL_FAILURE(Make({.workers = 1}));
  {
    auto joined = Join(Directory());
    BlockingCoordinator registry(*joined->coordinator, SystemClock());
    auto meta = ReadMeta(registry);
    meta->meta.frozen = true;
    meta->meta.reason = "the cluster is being made";
    ASSERT_TRUE(
        registry.Multi({Write::Set("/", FormatMeta(meta->meta), meta->version)}).status.ok());
  }
  auto joined = Join(Directory());
  ASSERT_TRUE(joined.ok()) << joined.status();
  BlockingCoordinator registry(*joined->coordinator, SystemClock());
  EXPECT_FALSE(ReadMeta(registry)->meta.frozen);
  EXPECT_TRUE(registry.Read(SlotPath({.rack = 3, .worker = 15})).ok());
}

TEST_F(JoinClusterTest, DoesNotWaitForAnUnreachableRegistry) {
  const auto joined = Join(ZooKeeperThatIsAway());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->layout, Layout::Firn());
  EXPECT_EQ(joined->uuid, "");
}

TEST_F(JoinClusterTest, UsesTheRememberedLayoutIfTheRegistryIsUnreachable) {
  Remember(Layout::Twitter());
  const auto joined = Join(ZooKeeperThatIsAway());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->layout, Layout::Twitter());
  EXPECT_EQ(joined->uuid, kUuid);
}

TEST_F(JoinClusterTest, UsesTheRememberedSplitIfTheRegistryIsUnreachable) {
  disk_.hint = FormatHint(
      {.machine = 23, .slot = {.rack = 7, .worker = 1}, .uuid = kUuid, .layout = "firn"});
  const auto joined = Join(ZooKeeperThatIsAway());
  ASSERT_TRUE(joined.ok()) << joined.status();
  EXPECT_EQ(joined->split.rack_bits(), 4);
  EXPECT_FALSE(joined->known);
}

TEST_F(JoinClusterTest, RefusesAnInvalidRegistry) {
  EXPECT_EQ(Join({.registry = "paper"}).code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn
