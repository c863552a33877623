#include "registry/dir/dir_witness.h"

#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/dir/dir_coordinator.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

// Not a real directory: only the name matters.
std::string SomePath() { return "/firn-witness-test/" + std::to_string(getpid()); }

TEST(DirWitnessTest, DetectsAUserOfAnotherDirectoryAtThePath) {
  const auto old_one = DirWitness::Stand(SomePath(), 7);
  ASSERT_TRUE(old_one.ok()) << old_one.status();
  EXPECT_EQ(DirWitness::StaleUser(SomePath(), 8), getpid());
}

TEST(DirWitnessTest, IgnoresUsersOfTheSameDirectoryAndOfOtherPaths) {
  const auto fellow = DirWitness::Stand(SomePath(), 7);
  const auto second = DirWitness::Stand(SomePath(), 7);
  const auto elsewhere = DirWitness::Stand(SomePath() + "x", 9);
  ASSERT_TRUE(fellow.ok() && second.ok() && elsewhere.ok());
  EXPECT_EQ(DirWitness::StaleUser(SomePath(), 7), std::nullopt);
}

TEST(DirWitnessTest, EndsWithItsObject) {
  { const auto brief = DirWitness::Stand(SomePath(), 7); }
  EXPECT_EQ(DirWitness::StaleUser(SomePath(), 8), std::nullopt);
}

TEST(DirWitnessTest, DoesNotRecreateARegistryDeletedUnderALiveProcess) {
  const TempDir folder;
  const std::string path = folder / "registry";
  auto living = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  ASSERT_TRUE(living.ok()) << living.status();
  std::filesystem::rename(path,
                          folder / "elsewhere");  // a deleted one may leave its inode's number
  const auto refused = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.status().message().find(std::to_string(getpid())), std::string::npos);

  living = Unavailable("ended");
  const auto made = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  EXPECT_TRUE(made.ok()) << made.status();
}

}  // namespace
}  // namespace firn
