#include "registry/claim/static_keeper.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/memory_state_folder.h"
#include "tests/support/sequenced_user.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kStart{1'750'000'000'000};

class StaticKeeperTest : public testing::Test {
 protected:
  // One process.
  struct Host {
    Host(MemoryDisk& disk, const VirtualClock& with, StaticKeeperOptions options)
        : clock(with), folder(disk), user(with, {}, 1), keeper(std::move(options), folder, user) {}
    KeeperTime Time() { return {clock.Read(), user.Time()}; }
    bool Serves() { return user.Take(1).kind == Step::Kind::kTaken; }

    const VirtualClock& clock;
    MemoryStateFolder folder;
    SequencedUser user;
    StaticKeeper keeper;
  };

  std::unique_ptr<Host> Start(bool first = false, uint32_t machine = 7) {
    StaticKeeperOptions options;
    options.machine = MachineId(machine);
    options.first_start = first;
    auto host = std::make_unique<Host>(disk_, clock_, options);
    host->keeper.Tick(host->Time());
    return host;
  }
  void Run(Milliseconds time, Host& host) {
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(20)) {
      clock_.Advance(Milliseconds(20));
      host.keeper.Tick(host.Time());
    }
  }

  VirtualClock clock_{kStart};
  MemoryDisk disk_;
};

TEST_F(StaticKeeperTest, AFirstStartHasToBeSaid) {
  auto host = Start();
  EXPECT_FALSE(host->user.has_claim());
  EXPECT_NE(host->keeper.status(host->Time()).reason.find("--static_first_start"),
            std::string::npos);
  EXPECT_TRUE(Start(true)->Serves());
}

TEST_F(StaticKeeperTest, ServesAsLongAsTheFileCanBeWritten) {
  auto host = Start(true);
  for (int i = 0; i < 100; ++i) {
    Run(Milliseconds(200), *host);
    ASSERT_TRUE(host->Serves());
  }
  EXPECT_LT(disk_.grant_writes, 20);
  disk_.grant_writes_fail = true;
  Run(Milliseconds(4'000), *host);
  EXPECT_EQ(host->user.Take(1).kind, Step::Kind::kClaimEnds);
  disk_.grant_writes_fail = false;
  Run(Milliseconds(1'100), *host);
  EXPECT_TRUE(host->Serves());
}

TEST_F(StaticKeeperTest, ACrashAndARebootGoOnAboveWhatWasUsed) {
  auto host = Start(true);
  Run(Milliseconds(5'000), *host);
  ASSERT_TRUE(host->Serves());
  const auto last = host->user.Last();
  host.reset();
  disk_.identity.boot_id = "boot-2";
  clock_.StepWall(Milliseconds(-3'600'000));
  host = Start();
  ASSERT_TRUE(host->user.has_claim()) << host->keeper.status(host->Time()).reason;
  EXPECT_TRUE(host->Serves());
  EXPECT_GT(host->user.Last(), last);
}

TEST_F(StaticKeeperTest, ACleanStopLosesNothing) {
  auto host = Start(true);
  Run(Milliseconds(5'000), *host);
  ASSERT_TRUE(host->Serves());
  const auto last = host->user.Last();
  host->keeper.Release(host->Time());
  EXPECT_FALSE(host->Serves());
  host = Start();
  EXPECT_EQ(host->user.claim().first_tick(), last + 1);
}

TEST_F(StaticKeeperTest, ADamagedRecordCostsThreeSecondsAndNoId) {
  auto host = Start(true);
  Run(Milliseconds(10'000), *host);
  ASSERT_TRUE(host->Serves());
  const auto last = host->user.Last();
  const std::string good = disk_.grant;
  for (const size_t at : {size_t{20}, GrantFile::kRecordBytes + 20}) {
    disk_.grant = good;
    disk_.grant[at] ^= 1;
    EXPECT_GT(Start()->user.claim().first_tick(), last);
  }
}

TEST_F(StaticKeeperTest, ADamagedRecordCostsNoIdEitherRightAfterAStartOrAPause) {
  Start(true).reset();
  clock_.Advance(Milliseconds(5 * 3'600'000));
  auto host = Start();  // hours later
  ASSERT_TRUE(host->Serves());
  const auto check = [&](const char* when) {
    const std::string good = disk_.grant;
    for (const size_t at : {size_t{20}, GrantFile::kRecordBytes + 20}) {
      disk_.grant = good;
      disk_.grant[at] ^= 1;
      EXPECT_GT(Start()->user.claim().first_tick(), host->user.Last()) << when << at;
    }
    disk_.grant = good;
  };
  check("a start ");
  host = Start();
  clock_.Advance(Milliseconds(5 * 3'600'000));
  host->keeper.Tick(host->Time());
  ASSERT_TRUE(host->Serves());
  check("a pause ");
}

TEST_F(StaticKeeperTest, AFileSystemThatTellsNoTimeOfBirthIsRefused) {
  disk_.identity.born_ns = FileIdentity::kUntold;
  EXPECT_FALSE(Start(true)->user.has_claim());
  FileIdentity untold;
  untold.born_ns = FileIdentity::kUntold;
  EXPECT_FALSE(untold.SameFile(untold));
}

TEST_F(StaticKeeperTest, ACopyAndAnotherNumberAreRefused) {
  Start(true).reset();
  EXPECT_FALSE(Start(true, 8)->user.has_claim());
  FileIdentity& self = disk_.identity;
  for (uint64_t* part : {&self.device, &self.inode, &self.born_ns}) {
    ++*part;
    EXPECT_FALSE(Start(true)->user.has_claim());
    --*part;
  }
  EXPECT_TRUE(Start()->user.has_claim());
}

TEST_F(StaticKeeperTest, RubbishIsRefusedEvenAsAFirstStart) {
  disk_.grant.assign(StateFolder::kGrantBytes, 'x');
  EXPECT_FALSE(Start(true)->user.has_claim());
}

}  // namespace
}  // namespace firn
