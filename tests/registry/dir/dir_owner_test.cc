// Tests a registry of one user in which root creates nodes.

#include <filesystem>
#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "registry/dir/dir_tree.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;

constexpr uid_t kServer = 12'345;  // an unused number here
constexpr uid_t kStranger = 23'456;

class DirOwnerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "only root can change a file's owner";
    fs::permissions(folder_.path(), fs::perms(0755));
  }

  static Result<std::unique_ptr<DirTree>> Open(const std::string& path) {
    return DirTree::Open({.path = path}, SystemClock(), SystemEntropy());
  }
  static Write Create(const std::string& path) {
    return Write::Create(path, "", Lifetime::kPersistent);
  }
  static bool Do(DirTree& tree, std::vector<Write> writes) {
    return tree.Multi(std::move(writes)).status.ok();
  }

  // Returns the result of `verb` in a process of that user; -1: it died.
  template <typename Verb>
  static int As(uid_t user, gid_t group, Verb verb) {
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(group) != 0 || setuid(user) != 0) _exit(99);
      _exit(verb());
    }
    int ending = 0;
    if (waitpid(child, &ending, 0) != child || !WIFEXITED(ending)) return -1;
    return WEXITSTATUS(ending);
  }
  // Returns 0 if that user can do everything that a server does there.
  int ServeAs(uid_t user, gid_t group) {
    return As(user, group, [this] {
      auto tree = Open(place_);
      if (!tree.ok()) return 1;
      if (!Do(**tree, {Write::Set("/tags/order", "taken", Write::kAnyVersion)})) return 2;
      if (!Do(**tree, {Create("/tags/order/below"), Create("/tags/other")})) return 3;
      return Do(**tree, {Write::Erase("/tags/order/below", 0)}) ? 0 : 4;
    });
  }
  // Creates the registry's folder as a package does, and nodes as root.
  void MakeAsRoot(uid_t user, gid_t group, mode_t mode) {
    fs::create_directory(place_);
    ASSERT_EQ(chown(place_.c_str(), user, group), 0);
    ASSERT_EQ(chmod(place_.c_str(), mode), 0);
    RootsWork();
  }
  void RootsWork() {
    auto tree = Open(place_);
    ASSERT_TRUE(tree.ok()) << tree.status();
    ASSERT_TRUE(Do(**tree, {Create("/"), Create("/tags"), Create("/tags/order")}));
  }
  void ExpectAll(uid_t user, mode_t file, mode_t folder) {
    for (const auto& entry : fs::recursive_directory_iterator(place_)) {
      struct stat info {};
      ASSERT_EQ(lstat(entry.path().c_str(), &info), 0);
      EXPECT_EQ(info.st_uid, user) << entry.path();
      EXPECT_EQ(info.st_mode & 07777, entry.is_directory() ? folder : file) << entry.path();
    }
  }

  TempDir folder_;
  const std::string place_ = folder_ / "registry";
};

TEST_F(DirOwnerTest, FilesThatRootCreatesBelongToTheFoldersOwner) {
  MakeAsRoot(kServer, kServer, 0750);
  ExpectAll(kServer, 0640, 0750);
  EXPECT_EQ(ServeAs(kServer, kServer), 0);
}

TEST_F(DirOwnerTest, ARegistryThatRootCreatesInAUsersFolderBelongsToThatUser) {
  ASSERT_EQ(chown(folder_.path().c_str(), kServer, kServer), 0);
  RootsWork();
  EXPECT_EQ(ServeAs(kServer, kServer), 0);
}

TEST_F(DirOwnerTest, TheServerEndsASessionLeftBehindByRoot) {
  MakeAsRoot(kServer, kServer, 0755);
  EXPECT_EQ(As(0, 0,
               [this] {
                 auto tree = Open(place_);
                 const auto live = Write::Create("/live", "", Lifetime::kEphemeral);
                 if (!tree.ok() || !Do(**tree, {live})) return 1;
                 _exit(0);  // like a kill, without cleaning up
               }),
            0);
  EXPECT_EQ(As(kServer, kServer,
               [this] {
                 auto tree = Open(place_);
                 if (!tree.ok()) return 1;
                 return (*tree)->Read("/live").code() == Code::kNotFound ? 0 : 2;
               }),
            0);
}

TEST_F(DirOwnerTest, RefusesAnotherUserWithARemedy) {
  MakeAsRoot(kServer, kServer, 0755);
  EXPECT_EQ(As(kStranger, kStranger,
               [this] {
                 const Status refused = Open(place_).status();
                 const bool says =
                     refused.message().find("run this as " + std::to_string(kServer)) !=
                     std::string::npos;
                 return refused.code() == Code::kDenied && says ? 0 : 1;
               }),
            0);
  ExpectAll(kServer, 0644, 0755);
}

TEST_F(DirOwnerTest, AGroupWithWritePermissionIsAccepted) {
  MakeAsRoot(kServer, kServer, 0770);
  EXPECT_EQ(ServeAs(kStranger, kServer), 0);
  EXPECT_EQ(As(kServer, kServer,
               [this] {
                 auto tree = Open(place_);
                 if (!tree.ok()) return 1;
                 return Do(**tree, {Write::Set("/tags/other", "x", 0)}) ? 0 : 2;
               }),
            0);
}

}  // namespace
}  // namespace firn
