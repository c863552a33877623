// Tests a disk of a state folder that is full, read-only, or blocked.

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "tests/drill/drill.h"

namespace firn {
namespace {

// Puts state folders on a small disk in memory that only this process and its children can see. It
// disappears when they have ended.
class DiskDrill : public Drill {
 protected:
  void SetUp() override {
    static const int failure = OwnMounts() ? 0 : errno;
    if (failure != 0) {
      GTEST_SKIP() << "a disk cannot be mounted here: " << std::strerror(failure);
    }
    disk_ = folder("disk");
    ASSERT_EQ(mkdir(disk_.c_str(), 0755), 0);
    ASSERT_EQ(mount("drill", disk_.c_str(), "tmpfs", 0, "size=256k"), 0) << std::strerror(errno);
  }
  void TearDown() override {
    Drill::TearDown();
    if (!disk_.empty()) umount2(disk_.c_str(), MNT_DETACH);
  }

  static bool OwnMounts() {
    return unshare(CLONE_NEWNS) == 0 && mount("", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  }

  ClaimantOptions OnDisk() const { return {.state_dir = disk_ + "/state"}; }

  void FillDisk() {
    std::ofstream filler(disk_ + "/filler", std::ios::binary);
    const std::string block(4096, 'x');
    for (int i = 0; i < 128 && filler.write(block.data(), 4096).flush(); ++i) continue;
    EXPECT_FALSE(CanWrite()) << "the disk is not full";
  }
  void FreeDisk() {
    ASSERT_EQ(std::remove((disk_ + "/filler").c_str()), 0);
    ASSERT_TRUE(CanWrite());
  }
  void MountReadOnly(bool read_only) {
    ASSERT_EQ(mount("drill", disk_.c_str(), "tmpfs", MS_REMOUNT | (read_only ? MS_RDONLY : 0),
                    "size=256k"),
              0)
        << std::strerror(errno);
    ASSERT_EQ(CanWrite(), !read_only);
  }

  // Checks that it ends with a message and without issuing an id.
  void RefusesToBegin(Claimant& claimant, const std::string& sentence) {
    EXPECT_EQ(claimant.process().Wait(kPatience), 1) << claimant.Log();
    EXPECT_NE(claimant.Log().find(sentence), std::string::npos) << claimant.Log();
    EXPECT_EQ(claimant.runs(), 0u);
  }

 private:
  bool CanWrite() const {
    std::ofstream file(disk_ + "/probe", std::ios::binary);
    file << std::string(4096, 'x') << std::flush;
    return file.good();
  }

  std::string disk_;
};

TEST_F(DiskDrill, AHolderAndItsSuccessorIssueOnAFullDisk) {
  StartEnsemble(1);
  Claimant& holder = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(holder));
  const auto machine = holder.machine();
  const BootMs full = TestNow();
  FillDisk();
  // The grant is on this disk and is overwritten in place several times a second.
  ASSERT_TRUE(IssuesMore(holder, 1'000));
  EXPECT_FALSE(holder.RefusedSince(full));
  KillHard(holder);

  Claimant& second = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(second));
  EXPECT_EQ(second.machine(), machine);
  ASSERT_TRUE(IssuesMore(second));
  StopCleanly(second);
}

// The grant is in memory. Only the hint cannot be written, which the claimant reports.
TEST_F(DiskDrill, OnAFullDiskAStartRaisesAnAlarm) {
  StartEnsemble(1);
  FillDisk();
  Claimant& first = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(first));
  EXPECT_TRUE(IssuesMore(first));
  EXPECT_TRUE(Waits(first, "said so", [&] {
    return first.Log().find("No space left on device") != std::string::npos;
  }));
  KillHard(first);
  FreeDisk();
  Claimant& second = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(second));
  EXPECT_EQ(second.machine(), first.machine());
  EXPECT_TRUE(IssuesMore(second));
}

TEST_F(DiskDrill, OnAReadOnlyDiskNoClaimantStartsAndNothingIsLost) {
  StartEnsemble(1);
  Claimant& first = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(first));
  const auto machine = first.machine();
  KillHard(first);

  MountReadOnly(true);
  Claimant& second = Launch("a", OnDisk());
  RefusesToBegin(second, "Read-only file system");
  MountReadOnly(false);
  Claimant& third = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(third));
  EXPECT_EQ(third.machine(), machine);
  EXPECT_TRUE(IssuesMore(third));
}

// A disk that accepts writes but does not complete them until it is thawed.
class FrozenDiskDrill : public DiskDrill {
 protected:
  void SetUp() override {
    DiskDrill::SetUp();
    if (IsSkipped()) return;
    frozen_ = folder("frozen");
    ASSERT_EQ(mkdir(frozen_.c_str(), 0755), 0);
    const std::string image = folder("image");
    std::ofstream(image).close();
    ASSERT_EQ(truncate(image.c_str(), 8 << 20), 0);
    const Finished made = RunToEnd({"mkfs.ext4", "-q", "-F", image});
    const Finished mounted = RunToEnd({"mount", "-o", "loop", image, frozen_});
    if (made.exit_code != 0 || mounted.exit_code != 0) {
      GTEST_SKIP() << "no file system in a file here: " << made.err << mounted.err;
    }
  }
  void TearDown() override {
    Thaw();
    DiskDrill::TearDown();
    if (!frozen_.empty()) umount2(frozen_.c_str(), MNT_DETACH);
  }

  std::string state_dir() const { return frozen_ + "/state"; }
  bool Freeze() { return Control(FIFREEZE); }
  bool Thaw() { return Control(FITHAW); }

 private:
  bool Control(unsigned long request) const {
    const auto root = FileHandle::Open(frozen_, O_RDONLY | O_DIRECTORY);
    return root.ok() && ioctl(root->fd(), request, 0) == 0;
  }

  std::string frozen_;
};

TEST_F(FrozenDiskDrill, AClaimantIssuesAndRenewsWhileTheDiskIsBlocked) {
  StartEnsemble(1);
  const std::string hint = state_dir() + "/drill:10000:2130706433.properties";
  // Tags are served only after their definitions are on the disk, so a first run writes them.
  Claimant& first = Launch("a", {.state_dir = state_dir()});
  ASSERT_TRUE(Serves(first));
  ASSERT_TRUE(Waits(first, "remembered", [&] { return std::filesystem::exists(hint); }));
  StopCleanly(first);
  std::filesystem::remove(hint);
  ensemble().KillAll();
  Claimant& holder = Launch("a", {.state_dir = state_dir()});
  ASSERT_TRUE(
      Waits(holder, "opened its folder", [&] { return holder.status().state == "seeking"; }));
  ASSERT_TRUE(Freeze());
  ASSERT_TRUE(ensemble().RestartAll().ok());
  ASSERT_TRUE(Serves(holder));
  const WallMs bound = holder.status().bound;
  ASSERT_TRUE(IssuesMore(holder, 1'000));
  EXPECT_TRUE(Waits(holder, "renewed", [&] { return holder.status().bound > bound; }));
  // The hint never reached the disk, and the claimant did not wait for it.
  EXPECT_FALSE(std::filesystem::exists(hint));
  ASSERT_TRUE(Thaw());
  KillHard(holder);
  Claimant& second = Launch("a", {.state_dir = state_dir()});
  ASSERT_TRUE(Serves(second));
  EXPECT_EQ(second.machine(), holder.machine());
}

}  // namespace
}  // namespace firn
