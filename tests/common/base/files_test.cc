#include "common/base/files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class ReplaceFileTest : public testing::Test {
 protected:
  static std::string Read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }
  // Returns the number of files in the folder.
  size_t Files() const {
    const std::filesystem::directory_iterator all(folder_ / "."), end;
    return static_cast<size_t>(std::distance(all, end));
  }

  TempDir folder_;
  const std::string path_ = folder_ / "list";
  const Draft draft_{.path = folder_ / "list.new"};
  Replaced replaced_ = Replaced::kPerhaps;
};

TEST_F(ReplaceFileTest, LeavesTheNewFileAndNothingElse) {
  for (const char* text : {"first", "", "another, longer one"}) {
    ASSERT_TRUE(ReplaceFile(path_, draft_, text).ok());
    EXPECT_EQ(Read(path_), text);
    EXPECT_EQ(Files(), 1u);
  }
}

TEST_F(ReplaceFileTest, SetsTheModeOfTheDraft) {
  ASSERT_TRUE(ReplaceFile(path_, draft_, "text").ok());
  struct stat seen {};
  ASSERT_EQ(stat(path_.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 0777, 0600u);
}

TEST_F(ReplaceFileTest, ReplacesADraftLeftByACrash) {
  Write(draft_.path, "half of a longer te");
  ASSERT_TRUE(ReplaceFile(path_, draft_, "text").ok());
  EXPECT_EQ(Read(path_), "text");
}

TEST_F(ReplaceFileTest, DoesNotWriteThroughALinkInPlaceOfTheDraft) {
  const std::string other = folder_ / "other";
  Write(other, "another file's");
  std::filesystem::create_symlink(other, draft_.path);
  ASSERT_TRUE(ReplaceFile(path_, draft_, "text").ok());
  EXPECT_EQ(Read(path_), "text");
  EXPECT_EQ(Read(other), "another file's");
}

TEST_F(ReplaceFileTest, ReportsThatNothingIsReplacedIfTheDraftCannotBeCreated) {
  Write(path_, "old");
  const Draft nowhere{.path = folder_ / "missing" + "/list.new"};
  EXPECT_EQ(ReplaceFile(path_, nowhere, "text", &replaced_).code(), Code::kNotFound);
  EXPECT_EQ(replaced_, Replaced::kNo);
  EXPECT_EQ(Read(path_), "old");
}

TEST_F(ReplaceFileTest, RemovesADraftThatCannotBeRenamed) {
  std::filesystem::create_directory(path_);
  EXPECT_FALSE(ReplaceFile(path_, draft_, "text", &replaced_).ok());
  EXPECT_EQ(replaced_, Replaced::kPerhaps);
  EXPECT_EQ(Files(), 1u);
}

class ReadRegularFileTest : public ReplaceFileTest {};

TEST_F(ReadRegularFileTest, ReadsAWholeFileUpToItsLimit) {
  Write(path_, "12345");
  EXPECT_EQ(*ReadRegularFile(path_, 5), "12345");
  EXPECT_EQ(ReadRegularFile(path_, 4).code(), Code::kCorrupt);
  EXPECT_EQ(ReadRegularFile(folder_ / "none", 4).code(), Code::kNotFound);
}

TEST_F(ReadRegularFileTest, NamesPathsThatAreNotFilesWithoutWaiting) {
  struct Row {
    std::string path;
    const char* kind;
  };
  ASSERT_EQ(mkfifo((folder_ / "fifo").c_str(), 0600), 0);
  for (const Row& row : {Row{folder_ / "fifo", "a FIFO"}, Row{"/dev/zero", "a device"},
                         Row{folder_ / ".", "a folder"}}) {
    const auto read = ReadRegularFile(row.path, 10);
    EXPECT_EQ(read.code(), Code::kInvalid) << row.path;
    EXPECT_EQ(read.status().message(), row.path + " is " + row.kind + ", not a file");
    EXPECT_EQ(OpenRegular(row.path, O_RDWR | O_CREAT).code(), Code::kInvalid) << row.path;
  }
}

TEST_F(ReadRegularFileTest, FollowsALinkByDefault) {
  Write(folder_ / "real", "x");
  std::filesystem::create_symlink(folder_ / "real", path_);
  EXPECT_EQ(*ReadRegularFile(path_, 10), "x");
  EXPECT_EQ(ReadRegularFile(path_, 10, O_NOFOLLOW).code(), Code::kDenied);
}

}  // namespace
}  // namespace firn
