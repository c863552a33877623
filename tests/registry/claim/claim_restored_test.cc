// Tests a holder whose cluster was lost and restored, and one whose cluster is not restored yet.

#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

class ClaimRestoredTest : public ClaimKeeperTest {
 protected:
  MemoryDisk newcomers_disk_;
};

TEST_F(ClaimRestoredTest, AHolderOfARestoredClusterIssuesToItsBoundWithoutAnAlarm) {
  for (const bool taken : {false, true}) {
    MakeClusterWith(2);
    disk_ = newcomers_disk_ = {};
    ClaimOptions options = Options();
    options.worker = 0;
    auto host = Start(disk_, options);
    Run(Milliseconds(5'000), *host);
    const WallMs bound = host->status().bound;
    const std::string uuid = Meta().uuid;
    host->link().Disconnect();
    tree_.Wipe();
    AsOperator([&](BlockingCoordinator& registry) {
      RestoreFacts facts{.now = clock_.Wall(), .bounds = {{bound}}};
      facts.uuid = uuid;
      facts.layout = Layout::Firn();
      facts.rack_bits = 0;
      facts.workers = 2;
      const auto restored = RestoreCluster(registry, facts, entropy_);
      ASSERT_TRUE(restored.ok()) << restored.status();
    });
    auto newcomer = taken ? Start(newcomers_disk_, options) : nullptr;
    if (taken) Run(Milliseconds(1'000), *newcomer);
    host->link().Reconnect();
    Run(Milliseconds(1'000), *host);
    EXPECT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
    EXPECT_NE(RecordOf(0).nonce, host->status().nonce) << "not renewed";
    while (host->user().Time() + Milliseconds(10) < bound) {
      ASSERT_TRUE(Serves(*host)) << host->status().reason;
      Run(Milliseconds(250), *host);
    }
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kAlarm));
    EXPECT_TRUE(RecordOf(0).nonce.zero() || RecordOf(0).since >= bound) << "not inherited";
    EXPECT_FALSE(Meta().frozen);
  }
}

// The record still names the holder, but in a version before its last renewals.
TEST_F(ClaimRestoredTest, AHolderRequiresNoSecondRestoreAfterItsRecordWentBack) {
  auto host = Start();
  Run(Milliseconds(5'000), *host);
  const auto before = tree_.Save();
  Run(Milliseconds(60'000), *host);
  host->link().Disconnect();
  tree_.Load(before);
  host->link().Reconnect();
  Run(kAMoment, *host);
  EXPECT_TRUE(AsksForRestore(host->status())) << host->status().reason;
  const WallMs bound = host->status().bound;
  AsOperator([&](BlockingCoordinator& registry) {
    const auto restored =
        RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{bound}}}, entropy_);
    ASSERT_TRUE(restored.ok()) << restored.status();
  });
  for (int i = 0; i < 20; ++i) {
    Run(Milliseconds(3'000), *host);
    EXPECT_EQ(host->status().state, ClaimState::kLapsing);
    EXPECT_FALSE(AsksForRestore(host->status())) << host->status().reason;
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
  }
}

// The holder reads the root node before or after the restore, and the record after it.
TEST_F(ClaimRestoredTest, ARestoreBetweenTheReadsOfACheckRaisesNoAlarmOfDuplicates) {
  auto host = Start();
  Run(Milliseconds(5'000), *host);
  const Slot slot = *host->status().slot;
  RestoreFacts facts{.now = clock_.Wall(), .bounds = {{host->status().bound}}};
  host->link().Disconnect();
  host->link().Script(Verb::kRead, {});
  for (int i = 0; i < 2; ++i) {
    host->link().Script(Verb::kRead, {.apply_after = Milliseconds(100)});
  }
  host->link().Reconnect();
  Run(Milliseconds(20), *host);
  AsOperator([&](BlockingCoordinator& registry) {
    for (const std::string& path : {LivePath(slot), PastPath(slot), SlotPath(slot)}) {
      static_cast<void>(registry.Multi({Write::Erase(path, Write::kAnyVersion)}));
    }
    const auto restored = RestoreCluster(registry, facts, entropy_);
    ASSERT_TRUE(restored.ok()) << restored.status();
  });
  Run(Milliseconds(1'000), *host);
  EXPECT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
  for (const ClaimEvent& event : host->events()) {
    EXPECT_EQ(event.text.find("may be duplicated"), std::string::npos) << event.text;
  }
}

// The holder's claim is intact, but claims made after the restore are lost.
TEST_F(ClaimRestoredTest, ALapsingHolderFreezesARegistryThatWentBackBehindARestore) {
  for (const bool restored : {true, false}) {
    MakeClusterWith(2);
    disk_ = {};
    auto host = Start();
    Run(Milliseconds(60'000), *host);
    const auto before = tree_.Save();
    const WallMs bound = host->status().bound;
    const auto restore = [&](WallMs above) {
      AsOperator([&](BlockingCoordinator& registry) {
        ASSERT_TRUE(
            RestoreCluster(registry, {.now = clock_.Wall(), .bounds = {{above}}}, entropy_).ok());
      });
    };
    // Without a restore, this is a planned change of the root node.
    restored ? restore(bound) : Write1(kMetaPath, FormatMeta(Meta()));
    Run(Milliseconds(70'000), *host);
    ASSERT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
    const WallMs floor = Meta().floor;
    host->link().Disconnect();
    tree_.Load(before);
    host->link().Reconnect();
    Run(Milliseconds(5'000), *host);
    EXPECT_TRUE(Meta().frozen);
    EXPECT_TRUE(AsksForRestore(host->status())) << host->status().reason;
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
    EXPECT_GT(host->status().bound, floor) << "for the restore";
    restore(host->status().bound);
    Run(Milliseconds(700'000), *host);
    EXPECT_FALSE(Meta().frozen);
    ASSERT_EQ(host->status().state, ClaimState::kHolding) << host->status().reason;
    EXPECT_GT(RecordOf(host->status().slot->worker).since, floor);
  }
}

TEST_F(ClaimRestoredTest, ReportsALossOnce) {
  auto host = Start();
  Run(Milliseconds(5'000), *host);
  tree_.Wipe();
  Run(Milliseconds(10'000), *host);
  int alarms = 0;
  for (const ClaimEvent& event : host->events()) {
    alarms += event.kind == ClaimEvent::Kind::kAlarm ? 1 : 0;
  }
  EXPECT_EQ(alarms, 1);
  EXPECT_TRUE(Serves(*host)) << host->status().reason;
}

}  // namespace
}  // namespace firn
