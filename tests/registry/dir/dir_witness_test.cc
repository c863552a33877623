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

TEST(DirWitnessTest, DetectsAUserOfAnotherDirectoryAtThePath) {
  const TempDir folder;
  const auto old_one = DirWitness::Stand(folder.path(), 7);
  ASSERT_TRUE(old_one.ok()) << old_one.status();
  EXPECT_EQ(DirWitness::StaleUser(folder.path(), 8).value_or(std::nullopt), getpid());
}

TEST(DirWitnessTest, IgnoresUsersOfTheSameDirectoryAndOfOtherPaths) {
  const TempDir folder;
  std::filesystem::create_directory(folder / "a");
  std::filesystem::create_directory(folder / "b");
  const auto fellow = DirWitness::Stand(folder / "a", 7);
  const auto second = DirWitness::Stand(folder / "a", 7);
  const auto elsewhere = DirWitness::Stand(folder / "b", 9);
  ASSERT_TRUE(fellow.ok() && second.ok() && elsewhere.ok());
  const auto stale = DirWitness::StaleUser(folder / "a", 7);
  ASSERT_TRUE(stale.ok()) << stale.status();
  EXPECT_EQ(*stale, std::nullopt);
}

TEST(DirWitnessTest, EndsWithItsObject) {
  const TempDir folder;
  { const auto brief = DirWitness::Stand(folder.path(), 7); }
  EXPECT_EQ(DirWitness::StaleUser(folder.path(), 8).value_or(1), std::nullopt);
}

TEST(DirWitnessTest, DoesNotRecreateARegistryDeletedUnderALiveProcess) {
  const TempDir folder;
  const std::string path = folder / "registry";
  auto living = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  ASSERT_TRUE(living.ok()) << living.status();
  std::filesystem::rename(path,
                          folder / "elsewhere");  // a deleted folder's inode number may be reused
  const auto refused = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.status().message().find(std::to_string(getpid())), std::string::npos);

  living = Unavailable("ended");
  const auto made = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
  EXPECT_TRUE(made.ok()) << made.status();
}

// A registry in a folder of a TempDir, which this process uses until the object is destroyed.
struct UsedRegistry {
  UsedRegistry() {
    std::filesystem::create_directories(folder / "data");
    std::filesystem::create_directory_symlink("data", folder / "link");
    living = DirCoordinator::Open({.path = path}, SystemClock(), SystemEntropy());
    EXPECT_TRUE(living.ok()) << living.status();
  }
  // Opens a registry of this name below the folder, while this process still uses the deleted
  // registry.
  Code OpenAs(const std::string& name) const {
    return DirCoordinator::Open({.path = folder / name}, SystemClock(), SystemEntropy()).code();
  }

  const TempDir folder;
  const std::string path = folder / "data/registry";
  Result<std::unique_ptr<DirCoordinator>> living = Unavailable("not opened");
};

TEST(DirWitnessTest, RefusesADeletedRegistryUnderAnotherNameOfItsPath) {
  const UsedRegistry used;
  std::filesystem::rename(used.path, used.folder / "elsewhere");
  for (const char* name : {"data/./registry", "data//registry", "data/../data/registry",
                           "link/registry", "data/registry"}) {
    EXPECT_EQ(used.OpenAs(name), Code::kConflict) << name;
  }
}

TEST(DirWitnessTest, RefusesARegistryWhoseParentWasDeletedToo) {
  const UsedRegistry used;
  std::filesystem::rename(used.folder / "data", used.folder / "elsewhere");
  EXPECT_EQ(used.OpenAs("data/./registry"), Code::kConflict);
}

TEST(DirWitnessTest, RefusesARegistryWhoseContentsWereDeleted) {
  const UsedRegistry used;
  for (const auto& entry : std::filesystem::directory_iterator(used.path)) {
    std::filesystem::rename(entry.path(), used.folder / entry.path().filename());
  }
  EXPECT_EQ(used.OpenAs("link/registry"), Code::kConflict);
}

TEST(DirWitnessTest, RefusesALinkThatLeadsToAnotherDirectoryNow) {
  UsedRegistry used;
  used.living =
      DirCoordinator::Open({.path = used.folder / "link/registry"}, SystemClock(), SystemEntropy());
  ASSERT_TRUE(used.living.ok()) << used.living.status();
  std::filesystem::remove(used.folder / "link");
  std::filesystem::create_directory_symlink(".", used.folder / "link");
  EXPECT_EQ(used.OpenAs("link/registry"), Code::kConflict);
}

}  // namespace
}  // namespace firn
