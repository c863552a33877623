// Kills a process and restarts it.

#include "tests/drill/drill.h"

namespace firn {
namespace {

class RestartDrill : public Drill {
 protected:
  // Starts a claimant, and kills it while it issues.
  void StartAndKill(ClaimantOptions options = {}) {
    StartEnsemble(1);
    Claimant& first = Launch("a", std::move(options));
    ASSERT_TRUE(Serves(first));
    ASSERT_TRUE(IssuesMore(first));
    machine_ = first.machine();
    KillHard(first);
    last_ = first.member().runs().back().run.last();
  }

  // Checks that the successor continues with the same machine id.
  void GoesOn(Claimant& second) {
    ASSERT_TRUE(Serves(second));
    EXPECT_EQ(second.machine(), machine_);
    EXPECT_GT(second.first_run()->run.first, last_);
    FigureFirstId("launch to first id", second);
    ASSERT_TRUE(IssuesMore(second));
  }

  std::optional<MachineId> machine_;
  int64_t last_ = 0;
};

TEST_F(RestartDrill, KeepsTheMachineIdAfterAKill) {
  ASSERT_NO_FATAL_FAILURE(StartAndKill());
  Claimant& second = Launch("a");
  GoesOn(second);
  EXPECT_TRUE(Logs(second, "inherited: "));
}

TEST_F(RestartDrill, KeepsTheMachineIdAfterAKillWithoutTheRegistry) {
  ASSERT_NO_FATAL_FAILURE(StartAndKill());
  ensemble().KillAll();
  Claimant& second = Launch("a");
  GoesOn(second);
  EXPECT_FALSE(second.status().connected);
  EXPECT_TRUE(Logs(second, "offline: "));
  ASSERT_TRUE(ensemble().RestartAll().ok());
  EXPECT_TRUE(Waits(second, "connected", [&] { return second.status().connected; }));
  EXPECT_TRUE(IssuesMore(second));
  EXPECT_EQ(second.machine(), machine_);
}

// Clocks of a process under libfaketime: the wall clock is an hour behind, the boot clock is
// correct.
class ClockBackDrill : public RestartDrill {
 protected:
  static constexpr const char* kHourBack = "-3600";

  void LivesAnHourAgo(Claimant& claimant) {
    EXPECT_TRUE(Logs(claimant, "the wall clock is off by 3")) << "of an hour's milliseconds";
    const BootMs stamp = claimant.first_run()->at;
    EXPECT_GE(stamp, claimant.launched());
    EXPECT_LE(stamp, TestNow());
  }
};

TEST_F(ClockBackDrill, KeepsTheMachineIdIfTheClockGoesBackAnHour) {
  ASSERT_NO_FATAL_FAILURE(StartAndKill());
  Claimant& second = Launch("a", {.wall_clock_offset = kHourBack});
  GoesOn(second);
  LivesAnHourAgo(second);
}

TEST_F(ClockBackDrill, KeepsTheMachineIdWithoutTheRegistryIfTheClockGoesBackAnHour) {
  ASSERT_NO_FATAL_FAILURE(StartAndKill());
  ensemble().KillAll();
  Claimant& second = Launch("a", {.wall_clock_offset = kHourBack});
  GoesOn(second);
  LivesAnHourAgo(second);
}

TEST_F(ClockBackDrill, RefusesANewClaimWithAClockAnHourBack) {
  ASSERT_NO_FATAL_FAILURE(StartAndKill());
  Claimant& stranger = Launch("b", {.wall_clock_offset = kHourBack});
  EXPECT_TRUE(Refuses(stranger, "correct the clock"));
  EXPECT_EQ(stranger.runs(), 0u);
}

}  // namespace
}  // namespace firn
