// Pauses or copies a holder, or runs a second one.

#include <filesystem>

#include "tests/drill/drill.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

constexpr Milliseconds kShortWindow{4'000};

class HolderDrill : public Drill {
 protected:
  bool LiveIsGone(MachineId machine) {
    return ReadNode(LivePath(SlotOf(machine))).code() == Code::kNotFound;
  }
  // Copies a folder in use. If the copy fails because a temporary file was renamed, repeats it.
  void CopyInUse(const std::string& from, const std::string& to) {
    std::error_code failed;
    ASSERT_TRUE(Eventually(kPatience, [&] {
      fs::remove_all(folder(to));
      fs::copy(folder(from), folder(to), fs::copy_options::recursive, failed);
      return !failed;
    })) << failed.message();
  }
};

// There is only one machine id, so the other claimant can only get the paused holder's.
TEST_F(HolderDrill, AHolderPausedBeyondItsSessionDoesNotOverlapItsSuccessor) {
  StartEnsemble(1, 1);
  Claimant& paused = Launch("a", {.window = kShortWindow});
  ASSERT_TRUE(Serves(paused));
  ASSERT_TRUE(IssuesMore(paused));
  const auto machine = paused.machine();
  paused.process().Pause();
  ASSERT_TRUE(Waits(paused, "lost its session", [&] { return LiveIsGone(*machine); }));

  Claimant& successor = Launch("b", {.window = kShortWindow});
  ASSERT_TRUE(Serves(successor));
  EXPECT_EQ(successor.machine(), machine);
  ASSERT_TRUE(IssuesMore(successor));
  const BootMs resumed = TestNow();
  paused.process().Resume();
  EXPECT_TRUE(Waits(paused, "noticed", [&] {
    const StatusLine status = paused.status();
    return status.at > resumed && status.state != "holding" && status.connected;
  }));
  EXPECT_TRUE(IssuesMore(successor));

  // The machine id is free again when its holder ends.
  StopCleanly(successor);
  ASSERT_TRUE(Serves(paused));
  EXPECT_EQ(paused.machine(), machine);
  ASSERT_TRUE(IssuesMore(paused));
}

TEST_F(HolderDrill, ACopiedStateFolderIsHarmlessWithZooKeeper) {
  StartEnsemble(1);
  Claimant& owner = Launch("a");
  ASSERT_TRUE(Serves(owner));
  const std::string hint = "/drill:10000:2130706433.properties";
  ASSERT_TRUE(Waits(owner, "remembered", [&] { return fs::exists(folder("a.state") + hint); }));
  ASSERT_NO_FATAL_FAILURE(CopyInUse("a.state", "copy.state"));
  ASSERT_TRUE(fs::exists(folder("copy.state") + hint));

  Claimant& copy = Launch("copy", {.as = "a"});
  ASSERT_TRUE(Serves(copy));
  EXPECT_NE(copy.machine(), owner.machine());
  KillHard(owner);
  KillHard(copy);
  fs::copy(folder("a.state"), folder("copy.state"), fs::copy_options::overwrite_existing);
  Claimant& copy_again = Launch("copy", {.as = "a"});
  Claimant& owner_again = Launch("a");
  ASSERT_TRUE(Serves(owner_again));
  ASSERT_TRUE(Serves(copy_again));
  EXPECT_EQ(owner_again.machine(), owner.machine());
  EXPECT_NE(copy_again.machine(), owner.machine());
  EXPECT_TRUE(IssuesMore(owner_again));
  EXPECT_TRUE(IssuesMore(copy_again));
}

TEST_F(HolderDrill, ACopiedDirectoryRegistryIsRefused) {
  MakeDirectoryCluster();
  Claimant& owner = Launch("a");
  ASSERT_TRUE(Serves(owner));
  ASSERT_NO_FATAL_FAILURE(CopyInUse("a.state", "copy.state"));
  ASSERT_NO_FATAL_FAILURE(CopyInUse("registry", "copy"));

  Claimant& copy = Launch("copy", {.registry = "dir://" + folder("copy"), .as = "a"});
  EXPECT_EQ(copy.process().Wait(kPatience), 1) << copy.Log();
  EXPECT_NE(copy.Log().find("it is a copy"), std::string::npos) << copy.Log();
  EXPECT_EQ(copy.runs(), 0u);
  EXPECT_TRUE(IssuesMore(owner));
}

TEST_F(HolderDrill, ASecondProcessOnAStateFolderIsRefused) {
  MakeDirectoryCluster();
  Claimant& owner = Launch("a");
  ASSERT_TRUE(Serves(owner));
  Claimant& second = Launch("a");
  EXPECT_EQ(second.process().Wait(kPatience), 1) << second.Log();
  EXPECT_EQ(second.runs(), 0u);
  EXPECT_TRUE(IssuesMore(owner));
}

}  // namespace
}  // namespace firn
