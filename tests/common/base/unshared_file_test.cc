#include "common/base/unshared_file.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/in_child.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

class UnsharedFileTest : public testing::Test {
 protected:
  UnsharedFile Open() { return *UnsharedFile::Open(path, O_RDWR | O_CREAT); }

  TempDir folder;
  const std::string path = folder / "file";
};

TEST_F(UnsharedFileTest, IsOpenAsLongAsTheObject) {
  int fd = -1;
  {
    UnsharedFile file = Open();
    const UnsharedFile moved = std::move(file);
    fd = moved.fd();
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST_F(UnsharedFileTest, ReportsWhyAFileCannotBeOpened) {
  EXPECT_EQ(UnsharedFile::Open(path, O_RDWR).code(), Code::kNotFound);
  EXPECT_LT(UnsharedFile().fd(), 0);
}

TEST_F(UnsharedFileTest, AForkedChildHasNoCopy) {
  const UnsharedFile file = Open();
  EXPECT_EQ(InChild([&] { return IsOpen(file.fd()) ? 1 : 0; }), 0);
  EXPECT_TRUE(IsOpen(file.fd()));
}

TEST_F(UnsharedFileTest, AForkedChildDoesNotCloseItsOwnFileOfThatNumber) {
  std::optional<UnsharedFile> file = Open();
  const int fd = file->fd();
  EXPECT_EQ(InChild([&] {
              if (dup2(STDERR_FILENO, fd) != fd) return 1;
              file.reset();
              return IsOpen(fd) ? 0 : 2;
            }),
            0);
}

// Another thread opens and closes files during the fork.
TEST_F(UnsharedFileTest, AChildForkedAtAnyMomentHasNoCopy) {
  std::atomic<bool> stop = false;
  std::thread opener([&] {
    while (!stop) Open();
  });
  int files = -1;  // number of files in a child when no other thread runs
  const auto count = [] {
    int open_files = 0;
    for (int fd = 0; fd < 64; ++fd) open_files += IsOpen(fd) ? 1 : 0;
    return open_files;
  };
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    const int now = InChild(count);
    if (files < 0) files = now;
    EXPECT_EQ(now, files);
  }
  stop = true;
  opener.join();
}

}  // namespace
}  // namespace firn
