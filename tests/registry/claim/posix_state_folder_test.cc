#include "registry/state/posix_state_folder.h"

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr auto kCached = StateFolder::Durability::kPageCache;
constexpr auto kDisk = StateFolder::Durability::kDisk;

class PosixStateFolderTest : public testing::Test {
 protected:
  // Opens the folder with the grant in memory or, for a static machine id, on disk.
  Result<std::unique_ptr<PosixStateFolder>> Open(bool on_disk = false) {
    return PosixStateFolder::Open({.folder = folder_,
                                   .stem = "firn:1:2",
                                   .grant_dir = memory_.path(),
                                   .grant_on_disk = on_disk});
  }
  Result<std::unique_ptr<PosixStateFolder>> OpenOnDisk() { return Open(true); }
  // Returns the path of the grant file of a folder that is not open.
  std::string GrantPath(bool on_disk = false) { return (*Open(on_disk))->grant_path(); }
  std::string GrantFolder() const { return memory_ / "firn-" + std::to_string(geteuid()); }
  std::string LockPath() const { return folder_ + "/firn:1:2.lock"; }
  std::string HintPath() const { return folder_ + "/firn:1:2.properties"; }
  static void Copy(const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  }

  // Runs `verb` in a forked child and returns its result.
  template <typename Verb>
  int InChild(Verb verb) {
    const pid_t child = fork();
    if (child == 0) _exit(verb());
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }

  TempDir temp_;
  TempDir memory_{kMemoryDir};
  std::string folder_ = temp_ / "deep/er";
};

TEST_F(PosixStateFolderTest, ANewGrantFileIsBlankWithFullSizeAndPrivate) {
  for (const bool on_disk : {false, true}) {
    auto folder = Open(on_disk);
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_TRUE((*folder)->has_grant().ok());
    EXPECT_EQ(*(*folder)->ReadGrant(), std::string(StateFolder::kGrantBytes, ' '));
    struct stat stat {};
    ASSERT_EQ(::stat((*folder)->grant_path().c_str(), &stat), 0);
    EXPECT_EQ(stat.st_size, off_t{StateFolder::kGrantBytes});
    EXPECT_EQ(stat.st_mode & 0777, 0600u);
    const GrantIdentity identity = (*folder)->grant_identity();
    EXPECT_EQ(identity.file.inode, stat.st_ino);
    EXPECT_EQ(identity.lock, (*folder)->lock_identity());
    EXPECT_FALSE(identity.boot_id.empty());
  }
}

TEST_F(PosixStateFolderTest, KeepsItsContentsAfterARestart) {
  for (const bool on_disk : {false, true}) {
    {
      auto folder = Open(on_disk);
      ASSERT_TRUE((*folder)->WriteGrant(512, "abc", kCached).ok());
      ASSERT_TRUE((*folder)->WriteGrant(0, "def", kDisk).ok());
      (*folder)->KeepHint("one");
      (*folder)->KeepHint("two");
    }
    auto folder = Open(on_disk);
    ASSERT_TRUE(folder.ok());
    EXPECT_EQ((*folder)->ReadGrant()->substr(512, 3), "abc");
    EXPECT_EQ((*folder)->ReadGrant()->substr(0, 3), "def");
    EXPECT_EQ(*(*folder)->ReadHint(), "two");
  }
}

// Writes a page with this generation, as the kernel shows it (linux/vmclock-abi.h).
std::string VmClock(const std::string& path, char generation, bool shown = true) {
  std::string page(112, '\0');
  page.replace(0, 4, "VCLK");
  page[25] = shown ? 1 : 0;
  page[104] = generation;
  std::ofstream(path) << page;
  return path;
}

TEST_F(PosixStateFolderTest, AnotherGenerationOfTheMachineIsACopy) {
  const std::string plain = *BootId(temp_ / "missing");
  EXPECT_EQ(*BootId(VmClock(temp_ / "hidden", 7, false)), plain);
  const std::string clock = VmClock(temp_ / "clock", 7);
  EXPECT_EQ(*BootId(clock), plain + ".7");
  auto folder = PosixStateFolder::Open(
      {.folder = folder_, .stem = "firn:1:2", .grant_dir = memory_.path(), .vm_clock = clock});
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE((*folder)->TakeCopied());
  VmClock(clock, 8);
  EXPECT_TRUE((*folder)->TakeCopied());
  EXPECT_FALSE((*folder)->TakeCopied()) << "once";
  EXPECT_EQ((*folder)->grant_identity().boot_id, plain + ".8");
}

// A disk that is mounted again may have lost the last writes, so its L may be too low.
TEST_F(PosixStateFolderTest, WritesNoPartOfAGrantToDisk) {
  const std::string grant = GrantPath();
  EXPECT_TRUE(grant.starts_with(GrantFolder() + "/")) << grant;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    EXPECT_TRUE(entry.path() == LockPath() || entry.path() == HintPath()) << entry.path();
  }
}

TEST_F(PosixStateFolderTest, RefusesGrantsInADirectoryThatOutlivesTheBoot) {
  const TempDir disk(kDiskDir);
  auto folder =
      PosixStateFolder::Open({.folder = folder_, .stem = "firn:1:2", .grant_dir = disk.path()});
  ASSERT_TRUE(folder.ok()) << folder.status();
  const Status told = (*folder)->has_grant();
  EXPECT_NE(told.message().find(disk.path().string() + " is not on a tmpfs"), std::string::npos)
      << told;
  EXPECT_FALSE((*folder)->WriteGrant(0, "x", kCached).ok());
  EXPECT_FALSE(std::filesystem::exists(disk / "firn-" + std::to_string(geteuid())));
}

TEST_F(PosixStateFolderTest, RefusesGrantsInAFolderOpenToOthers) {
  ASSERT_TRUE(Open().ok());
  ASSERT_EQ(chmod(GrantFolder().c_str(), 0755), 0);
  EXPECT_NE((*Open())->has_grant().message().find("chmod 700"), std::string::npos);
  std::filesystem::remove_all(GrantFolder());
  std::filesystem::create_directory_symlink(temp_.path(), GrantFolder());
  EXPECT_FALSE((*Open())->has_grant().ok());
  std::filesystem::remove(GrantFolder());
  EXPECT_TRUE((*Open())->has_grant().ok());
}

TEST_F(PosixStateFolderTest, RefusesAForeignFileAtAGrantsPathByName) {
  const std::string grant = GrantPath();
  std::filesystem::create_hard_link(grant, grant + ".2");
  const auto linked = Open();
  EXPECT_EQ(linked.code(), Code::kInvalid);
  EXPECT_NE(linked.status().message().find(grant + " has a second hard link"), std::string::npos);
  std::filesystem::remove(grant + ".2");
  ASSERT_TRUE(Open().ok());
  if (geteuid() != 0) return;
  ASSERT_EQ(chown(grant.c_str(), 12345, 12345), 0);
  EXPECT_NE(Open().status().message().find(grant + " belongs to another user"), std::string::npos);
}

TEST_F(PosixStateFolderTest, RefusesAFifoAtAFilesPathByNameAtOnce) {
  const std::string grant = GrantPath();
  for (const std::string& path : {HintPath(), grant, GrantPath(true), LockPath()}) {
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const auto refused = Open(path.ends_with(".grant"));
    EXPECT_EQ(refused.code(), Code::kInvalid) << path;
    EXPECT_NE(refused.status().message().find(path + " is a FIFO"), std::string::npos)
        << refused.status();
    std::filesystem::remove(path);
    if (path != LockPath()) continue;
    EXPECT_NE(GrantPath(), grant) << "a re-created lock file makes another state folder";
    std::filesystem::remove(grant);
  }
}

TEST_F(PosixStateFolderTest, AnotherFoldersGrantIsAnotherFile) {
  const auto first = Open();
  const std::string one = (*first)->grant_path();
  const auto sibling =
      PosixStateFolder::Open({.folder = folder_, .stem = "firn:1:3", .grant_dir = memory_.path()});
  ASSERT_TRUE(sibling.ok()) << sibling.status();
  EXPECT_NE((*sibling)->grant_path(), one);
  EXPECT_NE((*sibling)->lock_identity(), (*first)->lock_identity());
}

TEST_F(PosixStateFolderTest, AGrantFileOfAWrongSizeIsNotNew) {
  const std::string grant = GrantPath();
  for (const off_t size : {off_t{100}, off_t{5000}}) {
    std::ofstream(grant, std::ios::trunc) << "what was used before";
    ASSERT_EQ(truncate(grant.c_str(), size), 0);
    auto folder = Open();
    ASSERT_TRUE(folder.ok()) << folder.status();
    EXPECT_EQ((*folder)->ReadGrant().code(), Code::kCorrupt) << size;
    // A write restores its size.
    ASSERT_TRUE((*folder)->WriteGrant(512, "abc", kCached).ok());
    EXPECT_EQ((*folder)->ReadGrant()->substr(510, 5), "  abc");
  }
  // Its creation was interrupted.
  for (const size_t blanks : {size_t{0}, size_t{100}}) {
    std::ofstream(grant, std::ios::trunc) << std::string(blanks, ' ');
    EXPECT_EQ(*(*Open())->ReadGrant(), std::string(StateFolder::kGrantBytes, ' ')) << blanks;
  }
}

TEST_F(PosixStateFolderTest, RefusesASecondProcessWithASentence) {
  auto folder = Open();
  const auto second = Open();  // flock distinguishes descriptors, not processes
  EXPECT_EQ(second.code(), Code::kConflict);
  EXPECT_NE(second.status().message().find("another process"), std::string::npos);
}

// Deleting a running process's lock file does not give access to its grant.
TEST_F(PosixStateFolderTest, RefusesAGrantThatAnotherProcessUses) {
  auto folder = Open();
  const std::string grant = (*folder)->grant_path();
  folder->reset();
  auto holder = LockedFile::Open(grant);
  ASSERT_TRUE(holder.ok()) << holder.status();
  const auto second = Open();
  EXPECT_EQ(second.code(), Code::kConflict);
  EXPECT_NE(second.status().message().find(grant), std::string::npos) << second.status();
}

TEST_F(PosixStateFolderTest, ANameForOneProcessOfAHostIsTakenOnce) {
  const StatePlace place{.folder = folder_,
                         .stem = "a",
                         .grant_dir = memory_.path(),
                         .only_on_host = "firn-test:" + temp_.path().string()};
  const auto first = PosixStateFolder::Open(place);
  ASSERT_TRUE(first.ok()) << first.status();
  StatePlace other = place;
  other.folder = temp_ / "other";
  EXPECT_EQ(PosixStateFolder::Open(other).code(), Code::kConflict);
}

TEST_F(PosixStateFolderTest, TheLockIsFreeAfterTheEnd) {
  ASSERT_TRUE(Open().ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(PosixStateFolderTest, ARemovedGrantFileIsNotFoundAgain) {
  auto folder = Open();
  ASSERT_TRUE((*folder)->WriteGrant(0, "abc", kCached).ok());
  ASSERT_TRUE((*folder)->RemoveGrant().ok());
  const FileIdentity before = (*folder)->grant_identity().file;
  EXPECT_EQ(Open().code(), Code::kConflict);
  folder->reset();
  auto next = Open();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE((*next)->grant_identity().file, before);
  EXPECT_EQ(*(*next)->ReadGrant(), std::string(StateFolder::kGrantBytes, ' '));
}

TEST_F(PosixStateFolderTest, ACopyHasAnotherIdentity) {
  for (const bool on_disk : {false, true}) {
    const std::string path = GrantPath(on_disk);
    const GrantIdentity original = (*Open(on_disk))->grant_identity();
    Copy(path, path + ".copy");
    ASSERT_EQ(rename((path + ".copy").c_str(), path.c_str()), 0);
    EXPECT_NE((*Open(on_disk))->grant_identity(), original);
    EXPECT_FALSE((*Open(on_disk))->grant_identity().file.SameAcrossMounts(original.file));
  }
}

TEST_F(PosixStateFolderTest, AFolderRestoredFromABackupHasAnotherIdentity) {
  const FileIdentity original = (*OpenOnDisk())->grant_identity().file;
  const FileIdentity lock = (*OpenOnDisk())->lock_identity();
  if (original.born_ns == FileIdentity::kUntold) GTEST_SKIP() << "no birth times here";
  // Birth times have a resolution of some milliseconds.
  ASSERT_TRUE(Eventually(Milliseconds(10'000), [&, tries = 0]() mutable {
    const auto probe = LockedFile::Open(temp_ / "probe" + std::to_string(++tries));
    return probe.ok() && probe->identity().born_ns > std::max(original.born_ns, lock.born_ns);
  }));
  const std::string backup = temp_ / "backup";
  std::filesystem::copy(folder_, backup, std::filesystem::copy_options::recursive);
  std::filesystem::remove_all(folder_);
  std::filesystem::copy(backup, folder_, std::filesystem::copy_options::recursive);
  auto restored = OpenOnDisk();
  ASSERT_TRUE(restored.ok()) << restored.status();
  // The new files may have the old inode numbers.
  EXPECT_NE((*restored)->grant_identity().file, original);
  EXPECT_NE((*restored)->lock_identity(), lock);
}

// A disk can stall for minutes, but issuing ids must not.
TEST_F(PosixStateFolderTest, WritingAHintNeverBlocks) {
  struct Disk {
    std::mutex mutex{};
    std::condition_variable thawed{};
    bool frozen = true;
  };
  const auto disk = std::make_shared<Disk>();
  auto folder =
      PosixStateFolder::Open({.folder = folder_, .stem = "firn:1:2", .grant_dir = memory_.path()},
                             [disk](const std::string&, std::string_view) {
                               std::unique_lock lock(disk->mutex);
                               disk->thawed.wait(lock, [&] { return !disk->frozen; });
                               return Unavailable("thawed");
                             });
  ASSERT_TRUE(folder.ok()) << folder.status();
  (*folder)->KeepHint("one");
  (*folder)->KeepHint("two");
  EXPECT_TRUE((*folder)->TakeHintFailure().ok());
  EXPECT_TRUE((*folder)->WriteGrant(0, "x", kCached).ok());
  {
    const std::scoped_lock lock(disk->mutex);
    disk->frozen = false;
    disk->thawed.notify_all();
  }
  EXPECT_TRUE(Eventually(Milliseconds(30'000),
                         [&] { return (*folder)->TakeHintFailure().message() == "thawed"; }));
}

TEST_F(PosixStateFolderTest, RefusesAFolderThatCannotBeCreated) {
  EXPECT_FALSE(PosixStateFolder::Open({.folder = "/proc/firn", .stem = "a"}).ok());
  EXPECT_EQ(PosixStateFolder::Open({.folder = "", .stem = "a"}).code(), Code::kInvalid);
}

TEST_F(PosixStateFolderTest, AForkedChildCanDoNothing) {
  auto folder = Open();
  PosixStateFolder& state = **folder;
  EXPECT_EQ(InChild([&] {
              state.KeepHint("x");  // does nothing and does not hang
              const bool refused = state.WriteGrant(0, "x", kCached).code() == Code::kDenied &&
                                   state.ReadHint().code() == Code::kDenied &&
                                   state.RemoveGrant().code() == Code::kDenied;
              return refused ? 7 : 1;
            }),
            7);
}

TEST_F(PosixStateFolderTest, AForkedChildNeitherReleasesNorKeepsTheLock) {
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
