#include <list>
#include <memory>
#include <string>

#include "registry/cluster/cluster_settings.h"
#include "tests/registry/claim/claim_keeper_fixture.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// Tests which slot a claimant takes, and which clock determines whether it is free.
class ClaimChoiceTest : public ClaimKeeperTest {
 protected:
  std::unique_ptr<ClaimHost> Start(const std::string& name) {
    return ClaimKeeperTest::Start(disks_.emplace_back(), Options(name));
  }
  void KillForGood(std::unique_ptr<ClaimHost>& host) {
    const int64_t session = host->session();
    host.reset();
    tree_.Expire(session);
  }
  void LiftFloor(WallMs floor) {
    ClusterMeta meta = Meta();
    meta.floor = floor;
    Write1(kMetaPath, FormatMeta(meta));
  }

  std::list<MemoryDisk> disks_;
};

TEST_F(ClaimChoiceTest, AfterARestoreADeadHoldersSlotIsFreeOnceClusterTimePassesItsBound) {
  MakeClusterWith(1);
  LiftFloor(clock_.Wall() + kAnHour);
  auto holder = Start("a");
  Run(Milliseconds(100), *holder);
  const WallMs bound = holder->status().bound;
  KillForGood(holder);
  auto heir = Start("b");
  Run(Milliseconds(10'000), *heir);
  EXPECT_FALSE(heir->user().has_claim());
  Run(Milliseconds(15'000), *heir);
  ASSERT_TRUE(heir->user().has_claim()) << heir->status().reason;
  EXPECT_GE(heir->user().claim().first_tick(), Layout::Firn().FirstTickFrom(bound));
}

TEST_F(ClaimChoiceTest, RecordsAClaimWindowThatIsLargerThanUsualBeforeItClaims) {
  MakeClusterWith(3);
  const auto recorded = [this] {
    const auto node = tree_.Peek(kSettingsPath);
    return node ? ParseClusterSettings(node->data)->window : Milliseconds(0);
  };
  auto usual = Start("a");
  Run(Milliseconds(100), *usual);
  EXPECT_EQ(recorded(), Milliseconds(0));
  for (const auto& [name, window] : {std::pair("b", 5'400'000), std::pair("c", 1'200'000)}) {
    ClaimOptions options = Options(name);
    options.window = Milliseconds(window);
    auto host = ClaimKeeperTest::Start(disks_.emplace_back(), options);
    Run(Milliseconds(100), *host);
    EXPECT_TRUE(host->user().has_claim()) << host->status().reason;
    EXPECT_EQ(recorded(), Milliseconds(5'400'000)) << name;
  }
}

TEST_F(ClaimChoiceTest, RecordsALargerClaimWindowAfterAnOfflineStart) {
  auto host = Start("a");
  Run(Milliseconds(1'000), *host);
  host.reset();
  ClaimOptions options = Options("a");
  options.window = Milliseconds(5'400'000);
  host = ClaimKeeperTest::Start(disks_.back(), options);
  host->link().Disconnect();
  Run(Milliseconds(600), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  host->link().Reconnect();
  const auto bound = [&] { return RecordOf(host->status().slot->worker).bound; };
  while (bound() < clock_.Wall() + Milliseconds(600'000)) Run(Milliseconds(10), *host);
  const auto node = tree_.Peek(kSettingsPath);
  ASSERT_TRUE(node);
  EXPECT_EQ(ParseClusterSettings(node->data)->window, options.window);
}

TEST_F(ClaimChoiceTest, AnIdClockAheadDoesNotMakeOthersSlotsFree) {
  MakeClusterWith(1);
  auto holder = Start("a");
  Run(Milliseconds(100), *holder);
  auto ahead = Start("b");
  ahead->user().id_clock().RaiseTo(clock_.Wall() + kAnHour, clock_.Read());
  Run(Milliseconds(120'000), {holder.get(), ahead.get()});
  EXPECT_FALSE(ahead->user().has_claim());
  EXPECT_FALSE(holder->Told(ClaimEvent::Kind::kLost));
}

TEST_F(ClaimChoiceTest, ItsOwnSlotIsFreeOnceItsOwnIdClockPassesTheBound) {
  MakeClusterWith(1);
  auto host = Start("a");
  Run(Milliseconds(100), *host);
  ASSERT_EQ(host->user().Take(1).kind, Step::Kind::kTaken);
  host->link().Disconnect();
  clock_.StepWall(-kAnHour);
  Run(host->status().left + Milliseconds(100), *host);
  ASSERT_GT(RecordOf(0).bound, clock_.Wall() + kAnHour / 2);
  host->link().Reconnect();
  Run(Milliseconds(8'000), *host);
  EXPECT_TRUE(host->user().has_claim()) << host->status().reason;
}

TEST_F(ClaimChoiceTest, TriesOtherSlotsWhenTheHintedSlotIsTakenMeanwhile) {
  auto host = Start("a");
  Run(Milliseconds(100), *host);
  const Slot hinted = *host->status().slot;
  host->keeper().Release(host->Time());
  Run(Milliseconds(100), *host);
  host = ClaimKeeperTest::Start(disks_.back(), Options("a"));
  host->link().Script(Verb::kMulti, {});  // the write of the clock node
  host->link().Script(Verb::kMulti, {Fate::Kind::kDone, Milliseconds(50), {}});
  Run(Milliseconds(50), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kClaiming);
  SlotRecord others = RecordOf(hinted.worker);
  others.nonce = Nonce(1, 1);
  others.bound = clock_.Wall() + kAnHour;
  Write1(SlotPath(hinted), FormatSlotRecord(others));
  Run(Milliseconds(200), *host);
  ASSERT_TRUE(host->user().has_claim()) << host->status().reason;
  EXPECT_NE(host->status().slot, hinted);
  EXPECT_FALSE(host->Told(ClaimEvent::Kind::kRefused));
}

}  // namespace
}  // namespace firn
