#include "common/base/file_writer.h"

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

// A disk whose writes block until it is thawed. Records the written texts.
class StallingDisk {
 public:
  FileWriter::Replacer replacer() {
    return [this](const std::string& path, std::string_view bytes) -> Status {
      std::unique_lock lock(mutex_);
      ++begun_;
      changed_.wait(lock, [this] { return !frozen_; });
      written_.push_back(path + "=" + std::string(bytes));
      return fails ? Unavailable("broken") : Status();
    };
  }
  void Thaw() {
    const std::scoped_lock lock(mutex_);
    frozen_ = false;
    changed_.notify_all();
  }
  int begun() const {
    const std::scoped_lock lock(mutex_);
    return begun_;
  }
  std::vector<std::string> written() const {
    const std::scoped_lock lock(mutex_);
    return written_;
  }

  bool fails = false;

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool frozen_ = true;
  int begun_ = 0;
  std::vector<std::string> written_;
};

TEST(FileWriterTest, WritesAllPendingFilesBeforeItEnds) {
  const TempDir folder;
  {
    FileWriter writer;
    writer.Replace(folder / "a", "1");
    writer.Replace(folder / "b", "2");
    writer.Replace(folder / "a", "3");
  }
  std::ostringstream a, b;
  a << std::ifstream(folder / "a").rdbuf();
  b << std::ifstream(folder / "b").rdbuf();
  EXPECT_EQ(a.str() + b.str(), "32");
}

TEST(FileWriterTest, WritesOnlyTheLastPendingTextOfAPath) {
  StallingDisk disk;
  FileWriter writer(disk.replacer());
  writer.Replace("a", "1");
  ASSERT_TRUE(Eventually(kPatience, [&] { return disk.begun() == 1; }));
  for (const char* text : {"2", "3", "4"}) writer.Replace("a", text);
  disk.Thaw();
  ASSERT_TRUE(Eventually(kPatience, [&] { return disk.written().size() == 2; }));
  EXPECT_EQ(disk.written(), (std::vector<std::string>{"a=1", "a=4"}));
}

TEST(FileWriterTest, ReportsAFailureOnce) {
  StallingDisk disk;
  disk.fails = true;
  disk.Thaw();
  FileWriter writer(disk.replacer());
  writer.Replace("a", "1");
  ASSERT_TRUE(Eventually(kPatience, [&] { return !disk.written().empty(); }));
  Status told;
  ASSERT_TRUE(Eventually(kPatience, [&] { return !(told = writer.TakeFailure()).ok(); }));
  EXPECT_EQ(told.message(), "broken");
  EXPECT_TRUE(writer.TakeFailure().ok());
}

TEST(FileWriterTest, ABlockedDiskDoesNotDelayTheEnd) {
  static StallingDisk disk;  // its thread ends some time after the test
  {
    FileWriter writer(disk.replacer());
    writer.Replace("a", "1");
    ASSERT_TRUE(Eventually(kPatience, [&] { return disk.begun() == 1; }));
  }
  EXPECT_TRUE(disk.written().empty());
  disk.Thaw();
  EXPECT_TRUE(Eventually(kPatience, [&] { return disk.written().size() == 1; }));
}

TEST(FileWriterTest, AForkedChildWritesNothingAndCanExit) {
  StallingDisk disk;
  auto writer = std::make_unique<FileWriter>(disk.replacer());
  writer->Replace("a", "1");
  ASSERT_TRUE(Eventually(kPatience, [&] { return disk.begun() == 1; }));
  const pid_t child = fork();
  if (child == 0) {
    writer->Replace("b", "2");
    writer.reset();
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 7);
  disk.Thaw();
  writer.reset();
  EXPECT_EQ(disk.written().size(), 1u);
}

// The host may refuse to create threads. A server must detect that at its start.
TEST(FileWriterTest, StartsItsThreadBeforeTheFirstFile) {
  std::atomic<pid_t> writing{0};
  FileWriter writer([&](const std::string&, std::string_view) -> Status {
    writing = gettid();
    return {};
  });
  std::set<std::string> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(task.path().filename());
  }
  writer.Replace("a", "1");
  ASSERT_TRUE(Eventually(kPatience, [&] { return writing != 0; }));
  EXPECT_TRUE(threads.contains(std::to_string(writing)));
}

}  // namespace
}  // namespace firn
