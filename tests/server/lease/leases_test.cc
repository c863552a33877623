#include "server/lease/leases.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "server/lease/lease_file.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

// Tests the parts of a server's leases that several threads use, and the file of leases.

namespace firn {
namespace {

class LeasesTest : public testing::Test {
 protected:
  std::string stem() const { return dir_ / "server"; }
  void WriteFile(const std::string& text) { std::ofstream(stem() + ".leases") << text; }

  TempDir dir_;
};

TEST_F(LeasesTest, AnswersCallsThatThePostedTaskFindsWithoutItsLeases) {
  VirtualClock clock(WallMs(1'795'582'362'773));
  SeededEntropy entropy(1);
  MemoryTree tree(clock);
  ControlLoop loop(clock, std::make_unique<MemoryCoordinator>(tree));
  loop.StartByHand([](Now) {});
  auto leases = std::make_unique<Leases>(LeaseTableOptions{.leases_max = 1}, loop, entropy, stem());
  const auto answer = leases->Call(LeaseEnd{.lease = "any"});
  EXPECT_EQ(answer->Get(), nullptr);
  leases.reset();
  loop.Round();
  ASSERT_NE(answer->Get(), nullptr);
  EXPECT_EQ(answer->Get()->verdict, LeaseVerdict::kLater);
}

TEST_F(LeasesTest, JudgesACallThatWaitedForAPausedProcessByTheTimeOfItsAnswer) {
  VirtualClock clock(WallMs(1'795'582'362'773));
  SeededEntropy entropy(1);
  MemoryTree tree(clock);
  ControlLoop loop(clock, std::make_unique<MemoryCoordinator>(tree));
  Leases leases({.leases_max = 1}, loop, entropy, stem());
  loop.StartByHand([&](Now now) { leases.Tick({now, now.wall}, {}); });
  loop.Round();
  clock.Advance(ClaimOptions().skew_max + Milliseconds(2'000));
  const auto answer = leases.Call(
      LeaseAsk{.token = std::string(32, 'a'), .name = "program", .clock = clock.Wall()});
  loop.Round();
  ASSERT_NE(answer->Get(), nullptr);
  EXPECT_EQ(answer->Get()->verdict, LeaseVerdict::kLater) << answer->Get()->message;
  EXPECT_EQ(answer->Get()->message, "the registry is unreachable; repeat the request");
}

TEST_F(LeasesTest, AServerWithoutLeasesCountsTheRequestsThatItRefuses) {
  NoLeases none("there is no registry");
  EXPECT_EQ(none.Call(LeaseAsk{})->Get()->message, "there is no registry");
  EXPECT_EQ(none.Call(LeaseRenewal{})->Get()->verdict, LeaseVerdict::kRefused);
  LeaseCounts expected;
  expected.refused[static_cast<size_t>(LeaseVerdict::kRefused)] = 2;
  EXPECT_EQ(none.counts().refused, expected.refused);
}

TEST_F(LeasesTest, AStartWithoutAFileHasNoBoundsAndNoFault) {
  ClaimOptions claim;
  LeaseFile::LoadInto(stem(), claim);
  EXPECT_TRUE(claim.kept.bounds.empty());
  EXPECT_EQ(claim.kept_fault, "");
  EXPECT_TRUE(claim.offline_start);
}

TEST_F(LeasesTest, AStartReadsTheBoundsOfItsFile) {
  const KeptBounds kept{.uuid = "6f1b", .bounds = {{{0, 5}, Nonce(1, 2), 77, WallMs(1'000)}}};
  WriteFile(FormatKeptBounds(kept));
  ClaimOptions claim;
  LeaseFile::LoadInto(stem(), claim);
  EXPECT_EQ(claim.kept, kept);
  EXPECT_EQ(claim.kept_fault, "");
}

TEST_F(LeasesTest, AStartWithADamagedFileClaimsNothingAndNamesTheRemedy) {
  WriteFile("firn-leases 1 6f1b\n0 5 ");
  ClaimOptions claim;
  LeaseFile::LoadInto(stem(), claim);
  EXPECT_FALSE(claim.offline_start);
  EXPECT_NE(claim.kept_fault.find(stem() + ".leases"), std::string::npos) << claim.kept_fault;
  EXPECT_NE(claim.kept_fault.find("delete the file"), std::string::npos) << claim.kept_fault;
}

TEST_F(LeasesTest, AStartWithAFileThatCannotBeReadClaimsNothing) {
  std::filesystem::create_directory(stem() + ".leases");
  ClaimOptions claim;
  LeaseFile::LoadInto(stem(), claim);
  EXPECT_FALSE(claim.offline_start);
  EXPECT_NE(claim.kept_fault.find(stem() + ".leases"), std::string::npos) << claim.kept_fault;
  EXPECT_EQ(claim.kept_fault.find("delete"), std::string::npos) << claim.kept_fault;
}

}  // namespace
}  // namespace firn
