// The disk of a state folder is full, or cannot be written.

#include <cerrno>
#include <cstring>
#include <fstream>

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "tests/drill/drill.h"

namespace firn {
namespace {

// State folders lie on a disk of their own, small and in memory, that only this process and what it
// starts can see, and that goes when they have ended.
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

  // It ends with a sentence and has issued nothing.
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

TEST_F(DiskDrill, AHolderGoesOnWhenItsDiskIsFullAndSoDoesItsSuccessor) {
  StartEnsemble(1);
  Claimant& holder = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(holder));
  const auto machine = holder.machine();
  const BootMs full = TestNow();
  FillDisk();
  // Its permission on file is moved ahead several times a second, in the place that it has.
  ASSERT_TRUE(IssuesMore(holder, 1'000));
  EXPECT_FALSE(holder.RefusedSince(full));
  KillHard(holder);

  Claimant& second = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(second));
  EXPECT_EQ(second.machine(), machine);
  ASSERT_TRUE(IssuesMore(second));
  StopCleanly(second);
}

TEST_F(DiskDrill, OnAFullDiskNobodyBegins) {
  StartEnsemble(1);
  FillDisk();
  Claimant& first = Launch("a", OnDisk());
  RefusesToBegin(first, "No space left on device");
  FreeDisk();
  Claimant& second = Launch("a", OnDisk());
  ASSERT_TRUE(Serves(second));
  EXPECT_TRUE(IssuesMore(second));
}

TEST_F(DiskDrill, OnAReadOnlyDiskNobodyBeginsAndNothingIsForgotten) {
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

}  // namespace
}  // namespace firn
