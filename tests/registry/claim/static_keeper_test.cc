#include "registry/claim/static_keeper.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/registry/memory_state_folder.h"
#include "tests/support/sequenced_user.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr WallMs kBegun{1'750'000'000'000};

class StaticKeeperTest : public testing::Test {
 protected:
  // One process.
  struct Host {
    Host(MemoryDisk& disk, const VirtualClock& with, StaticKeeperOptions options)
        : clock(with),
          folder(disk),
          user(with, {}, 1),
          keeper(std::move(options), folder, user,
                 {.event = [this](const ClaimEvent& event) { told.push_back(event.text); }}) {}
    KeeperTime Time() { return {clock.Read(), user.Time()}; }
    bool Serves() { return user.Take(1).kind == Step::Kind::kTaken; }

    const VirtualClock& clock;
    MemoryStateFolder folder;
    SequencedUser user;
    std::vector<std::string> told;
    StaticKeeper keeper;
  };

  std::unique_ptr<Host> Start(bool first = false, uint32_t machine = 7) {
    StaticKeeperOptions options;
    options.machine = MachineId(machine);
    options.first_start = first;
    options.adopt = adopt_;
    return StartWith(options);
  }
  std::unique_ptr<Host> StartWith(StaticKeeperOptions options) {
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

  VirtualClock clock_{kBegun};
  MemoryDisk disk_;
  bool adopt_ = false;
};

TEST_F(StaticKeeperTest, AFirstStartRequiresItsFlag) {
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

// For example, every sync of the disk fails. The log must say why no ids are issued.
TEST_F(StaticKeeperTest, AStartThatCannotWriteReportsOnceAndStartsWhenItCan) {
  disk_.grant_writes_fail = true;
  auto host = Start(true);
  Run(Milliseconds(5'000), *host);
  EXPECT_FALSE(host->user.has_claim());
  ASSERT_EQ(host->told.size(), 1u);
  EXPECT_NE(host->told[0].find("the grant file cannot be written"), std::string::npos);
  disk_.grant_writes_fail = false;
  Run(Milliseconds(2'000), *host);
  EXPECT_TRUE(host->Serves());
}

TEST_F(StaticKeeperTest, AfterACrashOrARebootContinuesAboveTheIdsUsed) {
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

TEST_F(StaticKeeperTest, WithinOneBootTheGrantSetsTheIdClock) {
  for (const Milliseconds off : {Milliseconds(48 * 3'600'000), Milliseconds(-48 * 3'600'000)}) {
    disk_ = {};
    auto host = Start(true);
    Run(Milliseconds(5'000), *host);
    host.reset();
    const WallMs before = clock_.Wall();
    clock_.StepWall(off);
    host = Start();
    ASSERT_TRUE(host->Serves()) << host->keeper.status(host->Time()).reason;
    EXPECT_LT(Layout::Firn().StartOf(host->user.Last()), before + Milliseconds(10'000));
  }
}

TEST_F(StaticKeeperTest, AfterARebootAClockFarFromTheLastIdRequiresConfirmation) {
  for (const Milliseconds off : {Milliseconds(25 * 3'600'000), Milliseconds(-25 * 3'600'000)}) {
    disk_ = {};
    auto host = Start(true);
    Run(Milliseconds(5'000), *host);
    ASSERT_TRUE(host->Serves());
    const auto last = host->user.Last();
    host.reset();
    disk_.identity.boot_id += "+";
    clock_.StepWall(off);
    host = Start();
    EXPECT_FALSE(host->user.has_claim());
    EXPECT_NE(host->keeper.status(host->Time()).reason.find("--static_clock_ok"),
              std::string::npos);
    host = StartWith({.machine = MachineId(7), .clock_ok = true});
    ASSERT_TRUE(host->Serves());
    EXPECT_GT(host->user.Last(), last);
  }
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

TEST_F(StaticKeeperTest, RefusesAFileSystemWithoutBirthTimes) {
  disk_.identity.file.born_ns = FileIdentity::kUntold;
  EXPECT_FALSE(Start(true)->user.has_claim());
  FileIdentity untold;
  untold.born_ns = FileIdentity::kUntold;
  EXPECT_FALSE(untold.SameAcrossMounts(untold));
}

TEST_F(StaticKeeperTest, RefusesACopyAndAnotherMachineId) {
  Start(true).reset();
  EXPECT_FALSE(Start(true, 8)->user.has_claim());
  FileIdentity& self = disk_.identity.file;
  for (uint64_t* part : {&self.inode, &self.born_ns}) {
    ++*part;
    EXPECT_FALSE(Start(true)->user.has_claim());
    --*part;
  }
  EXPECT_TRUE(Start()->user.has_claim());
}

TEST_F(StaticKeeperTest, AnotherDeviceNumberIsTheSameFile) {
  Start(true).reset();
  ++disk_.identity.file.device;
  disk_.identity.lock = {9, 9, 9};
  EXPECT_TRUE(Start()->user.has_claim());
}

TEST_F(StaticKeeperTest, AdoptsAMovedFileWithItsContents) {
  auto host = Start(true);
  Run(Milliseconds(5'000), *host);
  ASSERT_TRUE(host->Serves());
  const auto last = host->user.Last();
  host.reset();
  ++disk_.identity.file.inode;
  clock_.StepWall(Milliseconds(-3'600'000));
  EXPECT_FALSE(Start()->user.has_claim());
  adopt_ = true;
  host = Start();
  ASSERT_TRUE(host->Serves()) << host->keeper.status(host->Time()).reason;
  EXPECT_GT(host->user.Last(), last);
  adopt_ = false;
  host.reset();
  EXPECT_TRUE(Start()->user.has_claim()) << "once is enough";
}

TEST_F(StaticKeeperTest, RefusesGarbageEvenAsAFirstStart) {
  disk_.grant.assign(StateFolder::kGrantBytes, 'x');
  const auto host = Start(true);
  EXPECT_FALSE(host->user.has_claim());
  const std::string reason = host->keeper.status(host->Time()).reason;
  EXPECT_NE(reason.find("remove the grant file and set --static_first_start"), std::string::npos)
      << reason;
}

}  // namespace
}  // namespace firn
