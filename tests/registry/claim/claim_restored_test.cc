// A holder whose cluster was lost and restored, and one whose loss is not restored yet.

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
