// Rolls the ensemble back to an old state, or wipes it.

#include "tests/drill/drill.h"

namespace firn {
namespace {

constexpr Milliseconds kWindow{6'000};
constexpr Milliseconds kShort{1'000};

class LossDrill : public Drill {
 protected:
  static ClaimantOptions Options(Milliseconds probation = Milliseconds(0)) {
    return {.session = kShort, .window = kWindow, .probation = probation};
  }

  void Restore(int workers, std::vector<std::string> more = {}) {
    std::vector<std::string> command{"restore", "--skew_max_ms=5000",
                                     "--set=workers=" + std::to_string(workers)};
    command.insert(command.end(), more.begin(), more.end());
    const Finished restored = Firn(command);
    EXPECT_EQ(restored.exit_code, 0) << restored.err << restored.out;
  }

  // Waits until the holder has reached its bound, and its status contains the operator's remedy.
  void RunsDry(Claimant& holder) {
    EXPECT_TRUE(Refuses(holder, "NOT_READY"));
    EXPECT_TRUE(Refuses(holder, "firn restore"));
  }
};

TEST_F(LossDrill, FreezesARolledBackEnsembleAndRestoresIt) {
  StartEnsemble(3);
  Claimant& early = Launch("early", Options());
  ASSERT_TRUE(Serves(early));
  ASSERT_TRUE(ensemble().SaveData().ok());
  // The backup lacks a claim, and the renewals of another claim.
  Claimant& late = Launch("late", Options());
  ASSERT_TRUE(Serves(late));
  ASSERT_TRUE(Serves(early));
  const MachineId forgotten = *late.machine();
  ASSERT_FALSE(RecordOf(forgotten).nonce.zero());

  ASSERT_TRUE(ensemble().RestoreData().ok());
  const BootMs put_back = TestNow();
  EXPECT_TRUE(RecordOf(forgotten).never_used()) << "the backup contains the claim";
  ASSERT_TRUE(Waits(late, "froze the cluster", [&] { return Meta().frozen; }));
  Figure("put back to frozen", TestNow() - put_back);

  Claimant& stranger = Launch("stranger", Options(3 * kShort));
  EXPECT_TRUE(Refuses(stranger, "frozen"));
  RunsDry(late);
  RunsDry(early);
  EXPECT_EQ(stranger.runs(), 0u);

  Restore(8);
  for (Claimant* claimant : {&early, &late, &stranger}) {
    EXPECT_TRUE(Serves(*claimant));
    EXPECT_TRUE(IssuesMore(*claimant));
  }
}

// A server claims the lost machine id between the loss and the freeze.
TEST_F(LossDrill, ProbationPreventsAClaimInTheGapFromIssuing) {
  StartEnsemble(1, 1);
  ASSERT_TRUE(ensemble().SaveData().ok());
  Claimant& holder = Launch("holder", Options());
  ASSERT_TRUE(Serves(holder));
  const MachineId machine = *holder.machine();

  // Pause the holder, so that it does not freeze the cluster before the other process has claimed.
  holder.process().Pause();
  ASSERT_TRUE(ensemble().RestoreData().ok());
  EXPECT_TRUE(RecordOf(machine).never_used());
  // The loss of its session would restart its probation.
  ClaimantOptions on_probation = Options(Milliseconds(20'000));
  on_probation.session = 4 * kShort;
  Claimant& intruder = Launch("intruder", on_probation);
  ASSERT_TRUE(Waits(intruder, "claimed", [&] { return !RecordOf(machine).nonce.zero(); }));
  const BootMs resumed = TestNow();
  holder.process().Resume();
  ASSERT_TRUE(Waits(holder, "stopped", [&] {
    const StatusLine status = holder.status();
    return status.at > resumed && status.state != "holding" && status.answer != "issued";
  }));
  const BootMs holders_last = holder.member().runs().back().at;

  Restore(1);
  ASSERT_TRUE(Waits(holder, "came back, nor did the other", [&] {
    return (holder.serving() || intruder.serving()) && RecordOf(machine).bound > Meta().floor;
  }));
  if (const auto first = intruder.first_run()) {
    EXPECT_GT(first->at, holders_last) << "an id was issued during its probation";
  }
}

TEST_F(LossDrill, DetectsAWipedEnsembleAndRestoresIt) {
  StartEnsemble(3);
  Claimant& holder = Launch("a", Options());
  ASSERT_TRUE(Serves(holder));
  const std::string uuid = Meta().uuid;

  ASSERT_TRUE(ensemble().Wipe().ok());
  EXPECT_EQ(ReadNode(kMetaPath).code(), Code::kNotFound);
  EXPECT_TRUE(Refuses(holder, "firn restore"));
  Claimant& stranger = Launch("b", Options());
  EXPECT_TRUE(Refuses(stranger, "firn restore"));
  EXPECT_EQ(stranger.runs(), 0u);

  Restore(8, {"--layout=firn", "--uuid=" + uuid, "--set=default.strategy=snowflake",
              "--set=default_strategy=none", "--set=reserve=none", "--set=window=600000"});
  EXPECT_EQ(Meta().uuid, uuid);
  for (Claimant* claimant : {&holder, &stranger}) {
    EXPECT_TRUE(Serves(*claimant));
    EXPECT_TRUE(IssuesMore(*claimant));
  }
}

}  // namespace
}  // namespace firn
