#include <string>
#include <vector>

#include "registry/cluster/past_holders.h"
#include "registry/operate/restore.h"
#include "registry/operate/who.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

// One slot, and numbered processes that hold it one after another.
class ClaimPastTest : public ClaimKeeperTest {
 protected:
  void SetUp() override { MakeClusterWith(1); }

  std::unique_ptr<ClaimHost> StartOffline(int64_t pid) {
    auto host = StartAs(pid);
    host->link().Disconnect();
    Run(Milliseconds(600), *host);
    EXPECT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
    ticks_[static_cast<size_t>(pid)] = Tick1(*host);
    return host;
  }
  void Restore() {
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(RestoreCluster(registry, {.now = clock_.Wall()}, entropy_).ok());
    });
  }
  // Returns the time until the slot is free again.
  Milliseconds PassBound() { return RecordOf(0).bound - clock_.Wall() + Milliseconds(70'000); }
  void ExpectEachFound(int64_t pids) {
    for (int64_t pid = 1; pid <= pids; ++pid) {
      EXPECT_EQ(Who(ticks_[static_cast<size_t>(pid)]), std::vector<int64_t>{pid});
    }
  }

  std::unique_ptr<ClaimHost> StartAs(int64_t pid) {
    ClaimOptions options = Options();
    options.identity.pid = pid;
    return Start(disk_, options);
  }
  int64_t Tick1(ClaimHost& host) {
    const Step step = host.user().Take(1);
    EXPECT_EQ(step.kind, Step::Kind::kTaken);
    return step.tick.count();
  }
  // Returns the processes that may have used a tick, as `firn who` reports them.
  std::vector<int64_t> Who(int64_t tick, uint32_t worker = 0) {
    const auto id = Layout::Firn().Pack({.tick = Tick(tick), .machine = MachineId(worker)});
    std::vector<int64_t> pids;
    AsOperator([&](BlockingCoordinator& registry) {
      const auto found = FindIssuers(registry, {*id});
      ASSERT_TRUE(found.ok()) << found.status();
      for (const PastHolder& holder : found->front().holders) pids.push_back(holder.pid);
    });
    return pids;
  }

  std::vector<int64_t> ticks_ = std::vector<int64_t>(8);  // last used tick of each process
};

TEST_F(ClaimPastTest, FindsTheProcessThatUsedEachTick) {
  // Process 1 stops cleanly. Process 2 claims after it and is killed. Process 3 inherits the claim
  // and is killed. Process 4 starts while the registry is unreachable, and is killed before it is
  // reachable again. Process 5 inherits the claim.
  auto host = StartAs(1);
  Run(Milliseconds(300), *host);
  ticks_[1] = Tick1(*host);
  host->keeper().Release(host->Time());
  Run(Milliseconds(200), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kReleased);
  EXPECT_EQ(Who(ticks_[1]), std::vector<int64_t>{1}) << "a released record names its last holder";
  for (const int64_t pid : {2, 3}) {
    host = StartAs(pid);
    Run(Milliseconds(300), *host);
    ticks_[static_cast<size_t>(pid)] = Tick1(*host);
  }
  host = StartOffline(4);
  host->link().Reconnect();
  Run(Milliseconds(2'000), *host);
  host = StartAs(5);
  Run(Milliseconds(300), *host);
  ticks_[5] = Tick1(*host);
  ExpectEachFound(5);
}

// Processes that never reached the registry are recorded there from the grant.
TEST_F(ClaimPastTest, FindsProcessesThatEndedWithoutTheRegistry) {
  auto host = StartAs(1);
  Run(Milliseconds(300), *host);
  ticks_[1] = Tick1(*host);
  // Processes 2 and 3 never reach the registry. Process 4 reaches it and renews.
  for (const int64_t pid : {2, 3, 4}) host = StartOffline(pid);
  host->link().Reconnect();
  Run(Milliseconds(2'000), *host);
  // Processes 5 and 6 never reach it either. Process 7 inherits the claim at its start.
  for (const int64_t pid : {5, 6}) host = StartOffline(pid);
  host = StartAs(7);
  Run(Milliseconds(300), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kInherited));
  ticks_[7] = Tick1(*host);
  ExpectEachFound(7);
}

// The grant cannot be resumed, but the processes in its list have issued ids under the claim.
TEST_F(ClaimPastTest, FindsProcessesThatEndedWithoutTheRegistryBeforeARestore) {
  auto host = StartAs(1);
  Run(Milliseconds(300), *host);
  ticks_[1] = Tick1(*host);
  for (const int64_t pid : {2, 3}) host = StartOffline(pid);
  Restore();
  host = StartAs(4);
  Run(PassBound(), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
  ticks_[4] = Tick1(*host);
  ExpectEachFound(4);
}

// After a reboot no process may resume the grant, but it still lists the earlier processes.
TEST_F(ClaimPastTest, FindsProcessesThatEndedWithoutTheRegistryBeforeAReboot) {
  auto host = StartAs(1);
  Run(Milliseconds(300), *host);
  ticks_[1] = Tick1(*host);
  for (const int64_t pid : {2, 3}) host = StartOffline(pid);
  host.reset();
  disk_.identity.boot_id = "boot-2";
  host = StartAs(4);
  Run(PassBound(), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
  ticks_[4] = Tick1(*host);
  ExpectEachFound(4);
}

// The lost data contained a release of process 1 and a claim of process 2.
TEST_F(ClaimPastTest, NamesNoHolderForTheTimeThatARestoredRecordOnlyPermitted) {
  auto host = StartAs(1);
  Run(Milliseconds(60'000), *host);
  ticks_[1] = Tick1(*host);
  Run(Milliseconds(31'000), *host);
  const auto backup = tree_.Save();
  host->keeper().Release(host->Time());
  Run(Milliseconds(200), *host);
  MemoryDisk other;
  ClaimOptions options = Options("b");
  options.identity.pid = 2;
  auto second = Start(other, options);
  Run(Milliseconds(5'000), *second);
  ticks_[2] = Tick1(*second);
  second.reset();
  tree_.Load(backup);
  EXPECT_EQ(Who(ticks_[2]), std::vector<int64_t>{1}) << "nothing was restored yet";
  Restore();
  for (const int64_t pid : {0, 3}) {
    if (pid == 3) {
      disk_ = {};
      host = StartAs(3);
      Run(PassBound(), *host);
      ASSERT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
    }
    EXPECT_EQ(Who(ticks_[1]), std::vector<int64_t>{1});
    EXPECT_EQ(Who(ticks_[2]), std::vector<int64_t>{}) << "it is unknown";
  }
}

// Process 1 continues in a copy of the machine. On the original machine it is killed, and process 2
// continues.
TEST_F(ClaimPastTest, FindsAProcessThatLostItsClaimToACopyOfIt) {
  MakeClusterWith(2);
  auto copy = StartAs(1);
  Run(Milliseconds(10'000), *copy);
  const uint32_t worker = copy->status().slot->worker;
  MemoryDisk original = disk_;
  ClaimOptions options = Options();
  options.identity.pid = 2;
  auto host = Start(original, options);
  host->link().Disconnect();
  Run(Milliseconds(600), {copy.get(), host.get()});
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  ticks_[2] = Tick1(*host);
  Run(Milliseconds(70'000), *copy);
  host->link().Reconnect();
  Run(Milliseconds(2'000), {copy.get(), host.get()});
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kLost));
  EXPECT_EQ(Who(ticks_[2], worker), (std::vector<int64_t>{2, 1})) << "both may have issued it";
}

// The process that started without the registry never renews its claim, and claims the slot again.
TEST_F(ClaimPastTest, FindsAProcessWhoseOfflineClaimLapsedAfterARestore) {
  auto host = StartAs(1);
  Run(Milliseconds(300), *host);
  ticks_[1] = Tick1(*host);
  host = StartOffline(2);
  Restore();
  host->link().Reconnect();
  Run(PassBound(), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kClaimed));
  host = StartAs(3);
  Run(Milliseconds(300), *host);
  ticks_[3] = Tick1(*host);
  ExpectEachFound(3);
}

}  // namespace
}  // namespace firn
