// Loses packets between a holder and the registry, in one direction or both.

#include <cerrno>
#include <cstring>

#include <sched.h>

#include "tests/drill/drill.h"

namespace firn {
namespace {

constexpr Milliseconds kDeafSession{6'000};

// Runs the test and its children in their own network, so that a rule that drops packets affects no
// other program. Rules match the port of a member of the ensemble. Claimants know only member 0,
// and the test reads through the others.
class NetworkDrill : public Drill {
 protected:
  void SetUp() override {
    static const int failure = unshare(CLONE_NEWNET) == 0 ? 0 : errno;
    if (failure != 0) {
      GTEST_SKIP() << "a network namespace cannot be made here: " << std::strerror(failure);
    }
    ASSERT_TRUE(Done({"ip", "link", "set", "lo", "up"}));
    ASSERT_TRUE(Nft("add table ip drill"));
    ASSERT_TRUE(Nft("add chain ip drill out { type filter hook output priority 0 ; }"));
  }

  void StartEnsembleBehindOneMember(int workers = 8) {
    StartEnsemble(3, workers);
    if (HasFatalFailure()) return;
    const auto place = [this](int member) {
      return "127.0.0.1:" + std::to_string(ensemble().port(member));
    };
    behind_ = "zk://" + place(0) + kClusterPath;
    registry_ = "zk://" + place(1) + "," + place(2) + kClusterPath;
  }

  // Loses packets from member 0 to its clients. Packets to member 0 arrive.
  void LoseAnswers() { AddRule("tcp sport " + port() + " counter drop"); }
  // Like LoseAnswers, but from the `packets`th packet with data on.
  void LoseAnswersAfter(int packets) {
    AddRule("tcp sport " + port() + " ip length > 60 numgen inc mod 1000000 >= " +
            std::to_string(packets) + " counter drop");
  }
  void CutOff() {
    LoseAnswers();
    AddRule("tcp dport " + port() + " counter drop");
  }
  // Waits until the claimant closes its connection. Until then, dropped packets are sent again, so
  // an answer may still arrive late.
  void LoseTheConnection(Claimant& claimant) {
    ASSERT_TRUE(HasDropped());
    ASSERT_TRUE(Waits(claimant, "gave its connection up", [&] {
      const StatusLine status = claimant.status();
      return status.state != "none" && !status.connected;
    }));
  }
  void Heal() { ASSERT_TRUE(Nft("flush chain ip drill out")); }

  // Returns whether the rules have dropped a packet.
  bool HasDropped() {
    const std::string rules = RunToEnd({"nft", "list", "ruleset"}).out;
    return rules.find("packets") != std::string::npos &&
           rules.find("packets 0 bytes 0 drop") == std::string::npos;
  }

  ClaimantOptions Behind(Milliseconds session = Milliseconds(2'000)) {
    return {.registry = behind_, .session = session, .window = Milliseconds(40'000)};
  }

 private:
  static bool Done(const std::vector<std::string>& command) {
    const Finished finished = RunToEnd(command);
    EXPECT_EQ(finished.exit_code, 0) << finished.err;
    return finished.exit_code == 0;
  }
  static bool Nft(const std::string& rule) { return Done({"nft", rule}); }
  void AddRule(const std::string& rule) { ASSERT_TRUE(Nft("add rule ip drill out " + rule)); }
  std::string port() { return std::to_string(ensemble().port(0)); }

  std::string behind_;
};

TEST_F(NetworkDrill, ARenewalWhoseAnswerIsLostIsRecognisedAsItsOwn) {
  ASSERT_NO_FATAL_FAILURE(StartEnsembleBehindOneMember());
  Claimant& holder = Launch("a", Behind(kDeafSession));
  ASSERT_TRUE(Serves(holder));
  const MachineId machine = *holder.machine();
  const Nonce nonce = RecordOf(machine).nonce;

  const BootMs cut = TestNow();
  const int64_t version = VersionOf(machine);
  LoseAnswers();
  ASSERT_TRUE(Waits(holder, "renewed unheard", [&] {
    return VersionOf(machine) > version && RecordOf(machine).bound > holder.status().bound;
  }));
  LoseTheConnection(holder);
  const WallMs known = holder.status().bound;
  EXPECT_GT(RecordOf(machine).bound, known) << "the record must change without an answer";
  Heal();
  ASSERT_TRUE(Waits(holder, "renewed again", [&] { return holder.status().bound > known; }));
  ASSERT_TRUE(IssuesMore(holder));
  EXPECT_FALSE(holder.RefusedSince(cut));
  EXPECT_EQ(holder.machine(), machine);
  EXPECT_EQ(RecordOf(machine).nonce, nonce);
  Figure("longest stall since", holder.LongestStallSince(cut));
}

// The test does not know which packet answers the claim's write. So it loses all answers from the
// first packet on, then from the second on, and so on, until a claim was written but not answered.
// Several answers may share a packet, so it may miss the right one. Then it repeats the search.
// There is only one machine id, so a claimant that does not recognise its own claim cannot get one.
TEST_F(NetworkDrill, AClaimWhoseAnswerIsLostIsRecognisedAsItsOwn) {
  constexpr int kTriesMax = 60;
  ASSERT_NO_FATAL_FAILURE(StartEnsembleBehindOneMember(1));
  const MachineId machine(0);
  for (int i = 0, heard = 1; i < kTriesMax; ++i, ++heard) {
    LoseAnswersAfter(heard);
    Claimant& claimant = Launch("a", Behind(kDeafSession));
    ASSERT_TRUE(Waits(claimant, "lost an answer", [&] { return HasDropped(); }));
    const Nonce nonce = RecordOf(machine).nonce;
    if (nonce.zero()) {
      KillHard(claimant);
      Heal();
      continue;
    }
    LoseTheConnection(claimant);
    const bool knows = claimant.runs() > 0;
    Heal();
    ASSERT_TRUE(Serves(claimant));
    EXPECT_EQ(RecordOf(machine).nonce, nonce);
    EXPECT_TRUE(IssuesMore(claimant));
    if (!knows) return;
    StopCleanly(claimant);
    heard = 0;
  }
  FAIL() << "no claim was made with its answer lost";
}

TEST_F(NetworkDrill, AnExpiredSessionKeepsTheMachineIdWithoutAPause) {
  ASSERT_NO_FATAL_FAILURE(StartEnsembleBehindOneMember());
  Claimant& holder = Launch("a", Behind());
  ASSERT_TRUE(Serves(holder));
  const MachineId machine = *holder.machine();
  const int64_t session = holder.status().session;

  const BootMs cut = TestNow();
  CutOff();
  ASSERT_TRUE(Waits(holder, "expired",
                    [&] { return ReadNode(LivePath(SlotOf(machine))).code() == Code::kNotFound; }));
  Heal();
  ASSERT_TRUE(Waits(holder, "came back in another session", [&] {
    const StatusLine status = holder.status();
    return status.connected && status.session != session;
  }));
  ASSERT_TRUE(
      Waits(holder, "was live again", [&] { return ReadNode(LivePath(SlotOf(machine))).ok(); }));
  ASSERT_TRUE(IssuesMore(holder));
  EXPECT_FALSE(holder.RefusedSince(cut));
  EXPECT_EQ(holder.machine(), machine);
  Figure("longest stall since", holder.LongestStallSince(cut));
}

}  // namespace
}  // namespace firn
