#include "registry/operate/restore.h"
#include "server/lease/leases.h"
#include "tests/server/lease/lease_rig.h"

// Tests which leases servers grant and extend after a restore or a planned change of the root node.

namespace firn {
namespace {

class LeaseTimeTest : public LeaseTest {
 protected:
  void RestoreTo(Milliseconds ahead) {
    AsOperator([&](BlockingCoordinator& registry) {
      const RestoreFacts facts{.now = clock_.Wall(), .bounds = {{.bound = clock_.Wall() + ahead}}};
      ASSERT_TRUE(RestoreCluster(registry, facts, entropy_).ok());
    });
  }
};

// The slot's bound is above the id clock of a server that started at the floor.
TEST_F(LeaseTimeTest, ExtendsALeaseByTheClustersTimeWhereTheIdClockIsBehind) {
  RestoreTo(Milliseconds(3'600'000));
  auto server = StartServer();
  Run(Milliseconds(20'000), *server);
  LeaseGrant lease = Grant(*server, 1);
  WallMs end = StartOf(lease.until);
  EXPECT_GT(end, clock_.Wall() + Milliseconds(3'600'000)) << "counted from the floor";
  for (uint64_t turn = 1; turn <= 6; ++turn) {
    Run(Milliseconds(10'000), *server);
    lease = Renewed(*server, lease.lease, turn, turn - 1);
    EXPECT_GE(StartOf(lease.until), end + Milliseconds(9'000)) << "renewal " << turn;
    EXPECT_LT(lease.renew_in, Milliseconds(25'000));
    end = StartOf(lease.until);
  }
}

// After a planned change of the root node, the server's own claim is valid until its bound.
TEST_F(LeaseTimeTest, GrantsLeasesWhileTheServersOwnClaimLapses) {
  auto host = Start(disk_, Options("s"));
  auto server = StartServer();
  const auto run = [&](Milliseconds time) {
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(5)) {
      clock_.Advance(Milliseconds(5));
      host->Step();
      server->server = LeaseTable::ServerOf(host->status(), host->keeper().checked());
      server->Step();
    }
  };
  run(Milliseconds(60'000));
  Write1(kMetaPath, FormatMeta(Meta()));
  run(Milliseconds(40'000));
  ASSERT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
  const auto granted = server->Ask(1);
  run(kAMoment);
  EXPECT_FALSE(granted->terms().ending);
  // A server of a frozen cluster grants no leases.
  ClusterMeta meta = Meta();
  meta.frozen = true;
  Write1(kMetaPath, FormatMeta(meta));
  run(Milliseconds(70'000));
  ASSERT_EQ(host->status().state, ClaimState::kLapsing) << host->status().reason;
  EXPECT_EQ(server->Ask(2)->verdict(), LeaseVerdict::kLater);
}

TEST_F(LeaseTimeTest, NoLeaseEndsAfterTheLayoutsTime) {
  const Layout layout = Layout::Firn();
  constexpr Milliseconds kDay{86'400'000}, kSixHours{21'600'000};
  clock_.StepWall(layout.end() - kDay - Milliseconds(60'000) - clock_.Wall());
  LeaseTableOptions options = LeasesOf("s");
  options.claim.window = kSixHours;
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  LeaseGrant lease = Grant(*server, 1);
  uint64_t turn = 0;
  while (clock_.Wall() + Milliseconds(10'000) < layout.end()) {
    const auto replied = server->Renew(lease.lease, turn + 1, turn, kSixHours);
    ++turn;
    for (int i = 0; i < 3; ++i) server->Step();
    lease = replied->terms();
    EXPECT_LE(lease.until, layout.last_tick() + 1);
    clock_.Advance(Milliseconds(5'000));
    server->Step();
  }
  EXPECT_EQ(lease.until, layout.last_tick() + 1);
}

// All programs of a client need a second lease at the same time.
TEST_F(LeaseTimeTest, AnEndingLeaseLeavesRoomForItsReplacement) {
  LeaseTableOptions options = LeasesOf("s");
  options.leases_max = 1;
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  const auto ask = [&](uint64_t token) {
    const auto replied = server->Call(
        LeaseAsk{TokenOf(token), "program", Milliseconds(60'000), {}, clock_.Wall(), {"shop", 1}});
    Run(kAMoment, *server);
    return replied->verdict();
  };
  EXPECT_EQ(ask(1), LeaseVerdict::kGranted);
  EXPECT_EQ(ask(2), LeaseVerdict::kLater);
  Write1(kMetaPath, FormatMeta(Meta()));
  Run(Milliseconds(5'000), *server);
  EXPECT_EQ(ask(3), LeaseVerdict::kGranted);
  EXPECT_EQ(ask(4), LeaseVerdict::kLater) << "one for each";
}

TEST_F(LeaseTimeTest, AServerThatStartsInAFrozenClusterResumesLeasesAndGrantsNone) {
  ClusterMeta meta = Meta();
  meta.frozen = true;
  Write1(kMetaPath, FormatMeta(meta));
  auto host = Start(disk_, Options("s"));
  const auto now = [&] { return LeaseTable::ServerOf(host->status(), host->keeper().checked()); };
  EXPECT_FALSE(now().resumes) << "its clock was not checked yet";
  Run(kAMoment, *host);
  EXPECT_TRUE(now().resumes);
  EXPECT_NE(now().why_not.find("frozen"), std::string::npos) << now().why_not;
}

// If a claim takes long because of a slow registry or a probation, the program repeats its token at
// the same server, so no machine id is wasted.
TEST_F(LeaseTimeTest, AnswersThatAClaimIsUnderWayAndGrantsTheSameTokenLater) {
  LeaseTableOptions options = LeasesOf("s");
  options.claim.probation = Milliseconds(10'000);
  auto server = StartServer(std::move(options));
  Run(Milliseconds(10), *server);
  const BootMs begun = clock_.Boot();
  std::shared_ptr<Replied> replied;
  int repeated = 0;
  do {
    replied = server->Ask(1);
    for (int i = 0; i < 400 && !replied->reply; ++i) Run(Milliseconds(5), *server);
    ++repeated;
    EXPECT_EQ(replied->reply->claiming, replied->verdict() == LeaseVerdict::kLater);
  } while (replied->verdict() == LeaseVerdict::kLater && repeated < 100);
  EXPECT_EQ(replied->verdict(), LeaseVerdict::kGranted);
  EXPECT_GE(clock_.Boot() - begun, Milliseconds(10'000));
  EXPECT_GE(repeated, 5);
  EXPECT_LE(repeated, 11);
  EXPECT_FALSE(server->Ask(2)->reply.has_value());
  EXPECT_EQ(server->table().List().size(), 1u);
}

}  // namespace
}  // namespace firn
