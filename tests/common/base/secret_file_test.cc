#include "common/base/secret_file.h"

#include <fstream>

#include <grp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class SecretFileTest : public testing::Test {
 protected:
  std::string Write(const std::string& text, mode_t mode = 0600) {
    const std::string path = folder_ / "secret";
    std::ofstream(path, std::ios::trunc) << text;
    chmod(path.c_str(), mode);
    return path;
  }

  TempDir folder_;
};

TEST_F(SecretFileTest, ReturnsTheContentUnchanged) {
  EXPECT_EQ(ReadSecretFile(Write(" a\nb \n")).value_or(""), " a\nb \n");
  EXPECT_EQ(ReadSecretFile(Write("")).value_or("?"), "");
}

TEST_F(SecretFileTest, RefusesAFileThatOthersCanUse) {
  for (const mode_t mode : {0640u, 0604u, 0620u, 0601u}) {
    const Status refused = ReadSecretFile(Write("word", mode)).status();
    EXPECT_EQ(refused.code(), Code::kDenied) << mode;
    EXPECT_EQ(refused.message().find("word"), std::string::npos) << refused;
  }
}

TEST_F(SecretFileTest, AcceptsAFileOfRootThatOwnGroupsCanRead) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  constexpr gid_t kOwnGroup = 4711, kOtherGroup = 4712;
  constexpr uid_t kUser = 4713;
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  struct Case {
    gid_t group;
    mode_t mode;
    bool ok;
  };
  for (const Case& one :
       {Case{kOwnGroup, 0440, true}, Case{kOwnGroup, 0640, true}, Case{kOwnGroup, 0400, false},
        Case{kOwnGroup, 0660, false}, Case{kOwnGroup, 0444, false}, Case{kOtherGroup, 0440, false},
        Case{kOtherGroup, 0444, false}}) {
    const std::string path = Write("word", one.mode);
    ASSERT_EQ(chown(path.c_str(), 0, one.group), 0);
    const pid_t child = fork();
    if (child == 0) {
      const bool changed =
          setgroups(1, &kOwnGroup) == 0 && setgid(kUser) == 0 && setuid(kUser) == 0;
      _exit(changed ? (ReadSecretFile(path).ok() ? 1 : 0) : 2);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), one.ok ? 1 : 0) << one.group << " " << one.mode;
  }
}

TEST_F(SecretFileTest, RefusesAFolderAMissingFileAndALargeFile) {
  EXPECT_EQ(ReadSecretFile(folder_ / "missing").code(), Code::kNotFound);
  EXPECT_EQ(ReadSecretFile(folder_.path()).code(), Code::kDenied);
  EXPECT_EQ(ReadSecretFile(Write(std::string(kSecretFileBytesMax + 1, 'x'))).code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace firn
