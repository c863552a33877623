// Kills the leader of the ensemble, or the whole ensemble.

#include "common/id/layout.h"
#include "tests/drill/drill.h"

namespace firn {
namespace {

class EnsembleDrill : public Drill {};

TEST_F(EnsembleDrill, ADeadLeaderDoesNotPauseIssuing) {
  StartEnsemble(3);
  Claimant& holder = Launch("a", {.window = Milliseconds(20'000)});
  ASSERT_TRUE(Serves(holder));
  const auto machine = holder.machine();
  const int64_t version = VersionOf(*machine);

  const auto leader = ensemble().Leader();
  ASSERT_TRUE(leader.has_value());
  const BootMs killed = TestNow();
  ensemble().Kill(*leader);
  ASSERT_TRUE(Waits(holder, "saw another leader", [&] {
    const auto now = ensemble().Leader();
    return now.has_value() && *now != *leader;
  }));
  Figure("leader to leader", TestNow() - killed);
  // Renewals continue, so the holder is connected to the remaining members and writes.
  ASSERT_TRUE(Waits(holder, "renewed", [&] { return VersionOf(*machine) > version + 2; }));
  ASSERT_TRUE(IssuesMore(holder));

  EXPECT_FALSE(holder.RefusedSince(killed));
  EXPECT_EQ(holder.machine(), machine);
  Figure("longest stall since", holder.LongestStallSince(killed));
}

TEST_F(EnsembleDrill, WithoutAnEnsembleItIssuesToItsBoundAndRecovers) {
  StartEnsemble(3);
  Claimant& holder = Launch("a", {.window = Milliseconds(5'000)});
  ASSERT_TRUE(Serves(holder));
  const auto machine = holder.machine();

  const BootMs killed = TestNow();
  ensemble().KillAll();
  ASSERT_TRUE(Waits(holder, "was cut off", [&] { return !holder.status().connected; }));
  ASSERT_TRUE(IssuesMore(holder));
  EXPECT_FALSE(holder.RefusedSince(killed)) << "its bound was still ahead";

  ASSERT_TRUE(Refuses(holder, "NOT_READY"));
  const StatusLine dry = holder.status();
  const IdFields last = *Layout::Firn().Unpack(holder.member().runs().back().run.last());
  EXPECT_LE(Layout::Firn().StartOf(last.tick + 1), dry.bound);
  Figure("issued without it for", holder.member().runs().back().at - killed);

  ASSERT_TRUE(ensemble().RestartAll().ok());
  ASSERT_TRUE(ensemble().AwaitReady().ok());
  const BootMs back = TestNow();
  ASSERT_TRUE(Serves(holder));
  EXPECT_EQ(holder.machine(), machine);
  ASSERT_TRUE(IssuesMore(holder));
  for (const IssuedRun& issued : holder.member().runs()) {
    if (issued.at <= dry.at) continue;
    Figure("ensemble serving to first id", std::max(issued.at - back, Milliseconds(0)));
    break;
  }
}

}  // namespace
}  // namespace firn
