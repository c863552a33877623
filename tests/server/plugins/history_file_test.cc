#include "server/plugins/history_file.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// While it exists, no file of this process can grow beyond `bytes`, as on a full disk.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  ~FullDisk() { EXPECT_EQ(setrlimit(RLIMIT_FSIZE, &before_), 0); }

 private:
  rlimit before_{};
};

class HistoryFileTest : public testing::Test {
 protected:
  HistoryFile::Options Sized(int64_t bytes_max, int files_max) const {
    return {.path = path_, .bytes_max = bytes_max, .files_max = files_max};
  }

  TempDir dir_;
  const std::string path_ = dir_ / "history";
};

TEST_F(HistoryFileTest, RotatesWhenFullAndKeepsTheNewest) {
  HistoryFile file(Sized(10, 3));
  for (const char* line : {"aaaa\n", "bbbb\n", "cccc\n", "dddd\n", "eeee\n", "ffff\n", "gggg\n"}) {
    ASSERT_EQ(file.Append(line), Status());
  }
  EXPECT_EQ(Text(path_), "gggg\n");
  EXPECT_EQ(Text(path_ + ".1"), "eeee\nffff\n");
  EXPECT_EQ(Text(path_ + ".2"), "cccc\ndddd\n");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".3"));
}

TEST_F(HistoryFileTest, ASingleFileIsEmptiedWhenFull) {
  HistoryFile file(Sized(10, 1));
  for (const char* line : {"aaaa\n", "bbbb\n", "cccc\n"}) ASSERT_EQ(file.Append(line), Status());
  EXPECT_EQ(Text(path_), "cccc\n");
  EXPECT_FALSE(std::filesystem::exists(path_ + ".1"));
}

TEST_F(HistoryFileTest, ALineLargerThanTheLimitGetsItsOwnFile) {
  HistoryFile file(Sized(10, 2));
  ASSERT_EQ(file.Append("a\n"), Status());
  ASSERT_EQ(file.Append("a line that is long\n"), Status());
  ASSERT_EQ(file.Append("b\n"), Status());
  EXPECT_EQ(Text(path_), "b\n");
  EXPECT_EQ(Text(path_ + ".1"), "a line that is long\n");
}

TEST_F(HistoryFileTest, AppendsToTheFileOfAnEarlierProcess) {
  ASSERT_EQ(HistoryFile(Sized(100, 2)).Append("a\n"), Status());
  HistoryFile file(Sized(100, 2));
  ASSERT_EQ(file.Append("b\n"), Status());
  ASSERT_EQ(file.Sync(), Status());
  EXPECT_EQ(Text(path_), "a\nb\n");
}

TEST_F(HistoryFileTest, BeginsANewLineAfterATornOne) {
  std::ofstream(path_) << "a\ntor";
  ASSERT_EQ(HistoryFile(Sized(100, 2)).Append("b\n"), Status());
  EXPECT_EQ(Text(path_), "a\ntor\nb\n");
}

TEST_F(HistoryFileTest, AFullDiskLeavesWholeLinesAndRecovers) {
  HistoryFile file(Sized(1 << 20, 2));
  ASSERT_EQ(file.Append("first\n"), Status());
  {
    const FullDisk disk(20);
    const Status status = file.Append("a line that does not fit\n");
    EXPECT_EQ(status.code(), Code::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("cannot write"));
    EXPECT_EQ(Text(path_), "first\n") << "a part of a line was left in the file";
    EXPECT_EQ(file.Append("short\n"), Status()) << "a line that fits is still written";
  }
  EXPECT_EQ(file.Append("a line that fits by now\n"), Status());
  EXPECT_EQ(Text(path_), "first\nshort\na line that fits by now\n");
}

TEST_F(HistoryFileTest, ReopensTheFileOnceItsFolderReturns) {
  const std::string folder = dir_ / "logs";
  HistoryFile file({.path = folder + "/history", .bytes_max = 4, .files_max = 2});
  EXPECT_EQ(file.Append("a\n").code(), Code::kNotFound);
  EXPECT_EQ(file.Sync().code(), Code::kUnavailable);
  std::filesystem::create_directory(folder);
  EXPECT_EQ(file.Append("b\n"), Status());
  std::filesystem::remove_all(folder);
  EXPECT_EQ(file.Append("ccc\n").code(), Code::kNotFound) << "it had to be rotated";
  std::filesystem::create_directory(folder);
  EXPECT_EQ(file.Append("d\n"), Status());
  EXPECT_EQ(Text(folder + "/history"), "d\n");
}

}  // namespace
}  // namespace firn
