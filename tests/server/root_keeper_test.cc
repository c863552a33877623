#include "server/root_keeper.h"

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/reserve.h"
#include "registry/operate/restore.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/process.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kIdsSince{1'600'000'000'000};
constexpr WallMs kBegan{1'700'000'000'000};
constexpr Milliseconds kAMoment{1'000};

// A cluster in memory, its operator, and a server that keeps the root node's settings.
class RootKeeperTest : public testing::Test {
 protected:
  RootKeeperTest() {
    EXPECT_TRUE(operator_.Connect(Milliseconds(0)).ok());
    const ClusterPlan plan{.workers = 4, .default_strategy = "snowflake", .ids_since = kIdsSince};
    EXPECT_TRUE(MakeCluster(operator_, plan, entropy_).ok());
    uuid_ = ReadMeta(operator_)->meta.uuid;
    server_.OnSession([](SessionEvent) {});
    Start();
  }

  void Start() {
    keeper_.reset();
    keeper_ = std::make_unique<RootKeeper>(server_, entropy_, dir_ / "state");
  }
  // Lets time pass once the state folder was read.
  void Pass(Milliseconds d) {
    keeper_->Tick(clock_.Boot(), uuid_);
    ASSERT_TRUE(Eventually(kPatience, [&] { return keeper_->loaded(); }));
    for (const BootMs until = clock_.Boot() + d; clock_.Boot() < until;) {
      clock_.Advance(Milliseconds(50));
      do {
        if (between_) between_();
      } while (server_.Dispatch(Milliseconds(0)) > 0);
      keeper_->Tick(clock_.Boot(), uuid_);
    }
  }
  RootSettings Settings() {
    const auto settings = keeper_->settings();
    return settings ? *settings : RootSettings();
  }
  bool IsOnDisk(const RootSettings& settings) {
    return Eventually(kPatience, [&] {
      const Result<RootSettings> kept = ReadKeptRoot(dir_ / "state", uuid_);
      return kept.ok() && *kept == settings;
    });
  }
  // Another version of the root node, as an edit of it makes.
  void SetRoot(bool frozen) {
    MetaAsRead read = *ReadMeta(operator_);
    read.meta.frozen = frozen;
    ASSERT_TRUE(SetMeta(operator_, read).ok());
  }

  TempDir dir_;
  VirtualClock clock_{kBegan};
  SeededEntropy entropy_{7};
  MemoryTree tree_{clock_};
  MemoryCoordinator operators_{tree_}, server_{tree_};
  BlockingCoordinator operator_{operators_, clock_};
  std::string uuid_;
  std::unique_ptr<RootKeeper> keeper_;
  std::function<void()> between_;  // called before each answer
};

TEST_F(RootKeeperTest, KeepsSettingsAndReservationsForAStartAfterALoss) {
  Pass(kAMoment);
  EXPECT_EQ(Settings().default_strategy, "snowflake");
  EXPECT_EQ(Settings().ids_since, kIdsSince);
  EXPECT_EQ(Settings().workers, 4u);
  EXPECT_EQ(Settings().era_began, kBegan);
  EXPECT_TRUE(Settings().reserved.empty());
  ASSERT_TRUE(ReserveSlots(operator_, {{0, 2}}, "an old system").ok());
  Pass(RootKeeper::kRetry + kAMoment);
  ASSERT_EQ(Settings().reserved.size(), 1u);
  EXPECT_EQ(Settings().reserved.front().used_by, "an old system");
  const RootSettings before = Settings();
  ASSERT_TRUE(IsOnDisk(before));
  tree_.Wipe();
  Start();
  Pass(kAMoment);
  EXPECT_EQ(Settings(), before);
}

// Servers that start create nodes below the root node, and each of them changes its stat.
TEST_F(RootKeeperTest, ReadsTheClusterWhileServersStart) {
  int nodes = 0;
  between_ = [&] {
    const Write node = Write::Create(Cat("/node-", ++nodes), "", Lifetime::kPersistent);
    ASSERT_TRUE(operator_.Multi({node}).status.ok());
  };
  Pass(kAMoment);
  ASSERT_EQ(Settings().workers, 4u);
  EXPECT_TRUE(IsOnDisk(Settings()));
}

TEST_F(RootKeeperTest, AnOlderSettingsNodeReplacesNothing) {
  const auto set = [this](int64_t share) {
    const auto change = [share](ClusterSettings& settings) { settings.lease_share = share; };
    ASSERT_TRUE(ChangeSettings(operator_, ReadMeta(operator_)->meta.era, change).ok());
  };
  set(20);
  const MemoryTree::Image older = tree_.Save();
  set(70);
  Pass(kAMoment);
  const RootSettings newer = Settings();
  EXPECT_EQ(newer.lease_share, 70);
  EXPECT_EQ(newer.settings_version, 1);
  EXPECT_TRUE(IsOnDisk(newer));
  tree_.Load(older);
  Pass(2 * RootKeeper::kRereadMin + kAMoment);
  EXPECT_EQ(Settings(), newer);
}

TEST_F(RootKeeperTest, AnOlderOrFrozenRootNodeReplacesNothing) {
  Pass(kAMoment);
  const MemoryTree::Image older = tree_.Save();
  ASSERT_TRUE(ReserveSlots(operator_, {{0, 2}}, "an old system").ok());
  SetRoot(/*frozen=*/false);
  Pass(RootKeeper::kRetry + kAMoment);
  const RootSettings before = Settings();
  ASSERT_EQ(before.reserved.size(), 1u);
  ASSERT_TRUE(IsOnDisk(before));
  tree_.Load(older);
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings(), before);
  Start();
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings(), before) << "the state folder's";
}

// A reservation does not change the root node.
TEST_F(RootKeeperTest, OlderMachineIdsReplaceNothing) {
  Pass(kAMoment);
  const MemoryTree::Image older = tree_.Save();
  ASSERT_TRUE(ReserveSlots(operator_, {{0, 2}}, "an old system").ok());
  Pass(RootKeeper::kRetry + kAMoment);
  const RootSettings before = Settings();
  ASSERT_EQ(before.reserved.size(), 1u);
  ASSERT_TRUE(IsOnDisk(before));
  tree_.Load(older);
  Start();
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings(), before);
}

TEST_F(RootKeeperTest, ForgetsAReservationThatIsReleased) {
  ASSERT_TRUE(ReserveSlots(operator_, {{0, 2}}, "an old system").ok());
  Pass(kAMoment);
  ASSERT_EQ(Settings().reserved.size(), 1u);
  ASSERT_TRUE(ReleaseSlots(operator_, {{0, 2}}, clock_.Wall(), kAMoment).ok());
  Pass(RootKeeper::kRetry + kAMoment);
  EXPECT_TRUE(Settings().reserved.empty());
}

TEST_F(RootKeeperTest, AnEarlierEraReplacesNothing) {
  Pass(kAMoment);
  const MemoryTree::Image older = tree_.Save();
  const auto restored = RestoreCluster(operator_, {.now = clock_.Wall()}, entropy_);
  ASSERT_TRUE(restored.ok()) << restored.status();
  Pass(2 * RootKeeper::kRetry);
  const RootSettings before = Settings();
  ASSERT_EQ(before.floor, restored->floor);
  ASSERT_TRUE(IsOnDisk(before));
  tree_.Load(older);
  Start();
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings(), before);
}

// The window is needed for a restore after the node was lost, too.
TEST_F(RootKeeperTest, KeepsTheLargestClaimWindowThatItHasRead) {
  constexpr Milliseconds kLong{5'400'000};
  const auto raise = [&](ClusterSettings& it) { it.window = kLong; };
  ASSERT_TRUE(ChangeSettings(operator_, ReadMeta(operator_)->meta.era, raise).ok());
  Pass(kAMoment);
  ASSERT_EQ(Settings().window, kLong);
  ASSERT_TRUE(IsOnDisk(Settings()));
  ASSERT_TRUE(operator_.Multi({Write::Erase(kSettingsPath, Write::kAnyVersion)}).status.ok());
  SetRoot(/*frozen=*/false);
  Start();
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings().version, ReadMeta(operator_)->version);
  EXPECT_EQ(Settings().window, kLong);
}

// A folder in its place fails the write, as a full disk does.
TEST_F(RootKeeperTest, SettingsThatCannotBeWrittenAreNotSaved) {
  const std::filesystem::path file = dir_ / ("state." + uuid_ + ".root");
  std::filesystem::create_directories(file / "full");
  Pass(kAMoment);
  ASSERT_EQ(Settings().workers, 4u);
  EXPECT_FALSE(keeper_->saved());
  std::filesystem::remove_all(file);
  SetRoot(/*frozen=*/false);
  Pass(2 * RootKeeper::kRetry);
  EXPECT_TRUE(Eventually(kPatience, [&] { return keeper_->saved(); }));
  EXPECT_TRUE(IsOnDisk(Settings()));
}

TEST_F(RootKeeperTest, FollowsSettingsBesideTheRootNode) {
  Pass(kAMoment);
  ASSERT_EQ(Settings().lease_share, 50);
  const auto change = [](ClusterSettings& it) { it.lease_share = 70; };
  ASSERT_TRUE(ChangeSettings(operator_, ReadMeta(operator_)->meta.era, change).ok());
  Pass(2 * RootKeeper::kRereadMin);
  EXPECT_EQ(Settings().lease_share, 70);
}

TEST_F(RootKeeperTest, KnowsWhatAnUnfinishedRestoreHasLeftUntilItIsFinished) {
  Pass(RootKeeper::kRetry + kAMoment);
  EXPECT_EQ(keeper_->unfinished(), nullptr);
  RestoreFacts facts{.now = clock_.Wall()};
  facts.memory.documents = {{"/backups/a.json", "c1", kBegan}};
  facts.memory.host = "db1";
  ASSERT_TRUE(FreezeForRestore(operator_, facts, entropy_).ok());
  Pass(2 * RootKeeper::kRetry);
  ASSERT_NE(keeper_->unfinished(), nullptr);
  EXPECT_EQ(keeper_->unfinished()->documents, facts.memory.documents);
  // The next run has another document, and starts another era.
  facts.memory.documents.push_back({"/backups/b.json", "c2", kBegan});
  ASSERT_TRUE(FreezeForRestore(operator_, facts, entropy_).ok());
  Pass(2 * RootKeeper::kRetry);
  ASSERT_NE(keeper_->unfinished(), nullptr);
  EXPECT_EQ(keeper_->unfinished()->documents.size(), 2u);
  ASSERT_TRUE(RestoreCluster(operator_, facts, entropy_).ok());
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(keeper_->unfinished(), nullptr);
}

TEST_F(RootKeeperTest, ForgetsAnUnfinishedRestoreThatIsLostWithTheRegistry) {
  Pass(RootKeeper::kRetry + kAMoment);
  ASSERT_TRUE(FreezeForRestore(operator_, {.now = clock_.Wall()}, entropy_).ok());
  Pass(2 * RootKeeper::kRetry);
  ASSERT_NE(keeper_->unfinished(), nullptr);
  tree_.Wipe();
  Pass(3 * RootKeeper::kRereadMin);
  EXPECT_EQ(keeper_->unfinished(), nullptr);
}

TEST_F(RootKeeperTest, ReadsAgainWhenAFrozenClusterIsRestored) {
  Pass(kAMoment);
  const RootSettings before = Settings();
  SetRoot(/*frozen=*/true);
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings(), before);
  SetRoot(/*frozen=*/false);
  Pass(2 * RootKeeper::kRetry);
  EXPECT_EQ(Settings().version, before.version + 2);
}

}  // namespace
}  // namespace firn
