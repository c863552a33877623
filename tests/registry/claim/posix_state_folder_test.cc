#include "registry/claim/posix_state_folder.h"

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr auto kVolatile = StateFolder::Durability::kPageCache;
constexpr auto kDisk = StateFolder::Durability::kDisk;

class PosixStateFolderTest : public testing::Test {
 protected:
  Result<std::unique_ptr<PosixStateFolder>> Open() {
    return PosixStateFolder::Open(folder_, "firn:1:2");
  }
  std::string GrantPath() const { return folder_ + "/firn:1:2.grant"; }

  // What `verb` returns in a forked child.
  template <typename Verb>
  int InChild(Verb verb) {
    const pid_t child = fork();
    if (child == 0) _exit(verb());
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }

  TempDir temp_;
  std::string folder_ = temp_ / "deep/er";
};

TEST_F(PosixStateFolderTest, ANewGrantFileIsBlankAndOfItsFullSize) {
  auto folder = Open();
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*(*folder)->ReadGrant(), std::string(StateFolder::kGrantBytes, ' '));
  struct stat stat {};
  ASSERT_EQ(::stat(GrantPath().c_str(), &stat), 0);
  EXPECT_EQ(stat.st_size, 1024);
  EXPECT_EQ((*folder)->grant_identity().inode, stat.st_ino);
  EXPECT_FALSE((*folder)->grant_identity().boot_id.empty());
}

TEST_F(PosixStateFolderTest, WhatWasWrittenIsThereAfterARestart) {
  {
    auto folder = Open();
    ASSERT_TRUE((*folder)->WriteGrant(512, "abc", kVolatile).ok());
    ASSERT_TRUE((*folder)->WriteGrant(0, "def", kDisk).ok());
    ASSERT_TRUE((*folder)->ReplaceHint("one").ok());
    ASSERT_TRUE((*folder)->ReplaceHint("two").ok());
  }
  auto folder = Open();
  ASSERT_TRUE(folder.ok());
  EXPECT_EQ((*folder)->ReadGrant()->substr(512, 3), "abc");
  EXPECT_EQ((*folder)->ReadGrant()->substr(0, 3), "def");
  EXPECT_EQ(*(*folder)->ReadHint(), "two");
}

TEST_F(PosixStateFolderTest, AGrantFileOfAWrongSizeIsNoNewOne) {
  { ASSERT_TRUE(Open().ok()); }
  for (const off_t size : {off_t{100}, off_t{5000}}) {
    std::ofstream(GrantPath(), std::ios::trunc) << "what was used before";
    ASSERT_EQ(truncate(GrantPath().c_str(), size), 0);
    auto folder = Open();
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ((*folder)->ReadGrant().code(), Code::kCorrupt) << size;
    // Whoever needs nothing of it makes it whole by writing.
    ASSERT_TRUE((*folder)->WriteGrant(512, "abc", kVolatile).ok());
    EXPECT_EQ((*folder)->ReadGrant()->substr(510, 5), "  abc");
  }
  // Its making was interrupted.
  for (const size_t blanks : {size_t{0}, size_t{100}}) {
    std::ofstream(GrantPath(), std::ios::trunc) << std::string(blanks, ' ');
    EXPECT_EQ(*(*Open())->ReadGrant(), std::string(StateFolder::kGrantBytes, ' ')) << blanks;
  }
}

TEST_F(PosixStateFolderTest, ASecondProcessIsRefusedWithASentence) {
  auto folder = Open();
  const auto second = Open();  // flock tells descriptors apart, not processes
  EXPECT_EQ(second.code(), Code::kConflict);
  EXPECT_NE(second.status().message().find("another process"), std::string::npos);
}

TEST_F(PosixStateFolderTest, TheLockIsFreeAfterTheEnd) {
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(PosixStateFolderTest, ARemovedGrantFileIsNotFoundAgain) {
  auto folder = Open();
  ASSERT_TRUE((*folder)->WriteGrant(0, "abc", kVolatile).ok());
  ASSERT_TRUE((*folder)->RemoveGrant().ok());
  const uint64_t inode = (*folder)->grant_identity().inode;
  auto next = Open();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE((*next)->grant_identity().inode, inode);
  EXPECT_EQ(*(*next)->ReadGrant(), std::string(StateFolder::kGrantBytes, ' '));
}

TEST_F(PosixStateFolderTest, ACopyHasAnotherIdentity) {
  FileIdentity original;
  {
    auto folder = Open();
    original = (*folder)->grant_identity();
  }
  {
    std::ifstream from(GrantPath(), std::ios::binary);
    std::ofstream to(GrantPath() + ".copy", std::ios::binary);
    to << from.rdbuf();
  }
  ASSERT_EQ(rename((GrantPath() + ".copy").c_str(), GrantPath().c_str()), 0);
  EXPECT_NE((*Open())->grant_identity().inode, original.inode);
}

TEST_F(PosixStateFolderTest, AFolderPutBackFromABackupHasAnotherIdentity) {
  { ASSERT_TRUE(Open().ok()); }
  const FileIdentity original = (*Open())->grant_identity();
  if (original.born_ns == FileIdentity::kUntold) GTEST_SKIP() << "no birth times here";
  // Birth times move in steps of some milliseconds.
  ASSERT_TRUE(Eventually(Milliseconds(10'000), [&, tries = 0]() mutable {
    const auto probe = PosixStateFolder::Open(temp_ / "probe" + std::to_string(++tries), "p");
    return probe.ok() && (*probe)->grant_identity().born_ns > original.born_ns;
  }));
  const std::string backup = temp_ / "backup";
  std::filesystem::copy(folder_, backup, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(folder_);
  std::filesystem::copy(backup, folder_, std::filesystem::copy_options::recursive);
  auto restored = Open();
  ASSERT_TRUE(restored.ok()) << restored.status();
  // The inode number may well be the old one.
  EXPECT_NE((*restored)->grant_identity(), original);
}

TEST_F(PosixStateFolderTest, AFolderThatCannotBeMadeIsRefused) {
  EXPECT_FALSE(PosixStateFolder::Open("/proc/firn", "a").ok());
  EXPECT_EQ(PosixStateFolder::Open("", "a").code(), Code::kInvalid);
}

TEST_F(PosixStateFolderTest, AForkedChildMayDoNothing) {
  auto folder = Open();
  PosixStateFolder& state = **folder;
  EXPECT_EQ(InChild([&] {
              const bool refused = state.WriteGrant(0, "x", kVolatile).code() == Code::kDenied &&
                                   state.ReplaceHint("x").code() == Code::kDenied &&
                                   state.RemoveGrant().code() == Code::kDenied;
              return refused ? 7 : 1;
            }),
            7);
}

TEST_F(PosixStateFolderTest, AForkedChildsEndLeavesTheLockAndItsLifeDoesNotHoldIt) {
  auto folder = Open();
  EXPECT_EQ(InChild([&] {
              folder->reset();
              return 7;
            }),
            7);
  EXPECT_EQ(Open().code(), Code::kConflict);
  int gate[2];
  int ready[2];
  ASSERT_EQ(pipe(gate), 0);
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  char byte = 0;
  if (child == 0) {
    close(gate[1]);
    if (write(ready[1], "x", 1) != 1) _exit(1);
    _exit(read(gate[0], &byte, 1) == 0 ? 0 : 1);
  }
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  folder->reset();
  EXPECT_TRUE(Open().ok());
  for (const int end : {gate[0], gate[1], ready[0], ready[1]}) close(end);
  waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace firn
