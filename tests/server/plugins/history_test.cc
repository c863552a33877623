#include "server/plugins/history.h"

#include <filesystem>
#include <fstream>
#include <latch>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'732'185'600'000;

class HistoryTest : public testing::Test {
 protected:
  void Open(History::Options options = {}) {
    if (options.file.path.empty()) options.file.path = path_;
    options.log = [this](const std::string& line) { log_.push_back(line); };
    history_ = std::make_shared<History>(clock_, options);
    started_ = history_->Start();
  }

  void Record(std::string_view tag, std::vector<IdRun> list, std::string_view client = "",
              Method method = Method::kThrift) {
    Runs runs;
    for (const IdRun& run : list) runs.Add(run);
    HistoryPlugin plugin(history_, tag);
    const Request request{.tag = tag, .count = runs.count(), .method = method, .client = client};
    EXPECT_FALSE(plugin.After(request, runs).has_value());
    EXPECT_EQ(runs.count(), request.count) << "the ids are unchanged";
  }

  std::vector<std::string> FileLines(const std::string& path) const {
    std::ifstream file(path);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  std::vector<std::string> FileLines() const { return FileLines(path_); }

  TempDir dir_;
  const std::string path_ = dir_ / "history";
  VirtualClock clock_{WallMs(kNow)};
  std::vector<std::string> log_;  // used by the writer until Stop
  std::shared_ptr<History> history_;
  Status started_;
};

TEST_F(HistoryTest, WritesOneLinePerRun) {
  Open();
  Record("order", {{17, 3, 1}, {4096, 2, 1024}}, "10.0.0.1:5555");
  Record("a/b c", {{1, 1, 1}}, "", Method::kHttp);
  history_->Stop();
  EXPECT_THAT(FileLines(), ElementsAre("1732185600000 order 17 3 1 thrift 10.0.0.1:5555",
                                       "1732185600000 order 4096 2 1024 thrift 10.0.0.1:5555",
                                       "1732185600000 a%2Fb+c 1 1 1 http -"));
  EXPECT_EQ(history_->counts(), (HistoryCounts{.written = 3}));
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(HistoryTest, EndsALineWithTheTraceOfTheCall) {
  Open();
  Runs runs;
  runs.Add({1, 1, 1});
  HistoryPlugin(history_, "t").After({.tag = "t", .client = "a", .trace_id = "4bf92f"}, runs);
  history_->Stop();
  EXPECT_THAT(FileLines(), ElementsAre("1732185600000 t 1 1 1 embedded a 4bf92f"));
}

TEST_F(HistoryTest, AClientsNameCannotForgeALine) {
  Open();
  Record("t", {{1, 1, 1}}, "a b\n1 order 9\t\x80" + std::string(200, 'x'));
  history_->Stop();
  EXPECT_THAT(FileLines(),
              ElementsAre("1732185600000 t 1 1 1 thrift a?b?1?order?9??" + std::string(49, 'x')));
}

TEST_F(HistoryTest, WritesAllRunsOfOneCall) {
  Open();
  std::vector<IdRun> runs;
  for (int64_t i = 0; i < 1000; ++i) runs.push_back({i * 100, 50, 1});
  Record("order", runs);
  history_->Stop();
  ASSERT_EQ(FileLines().size(), 1000u);
  EXPECT_EQ(FileLines()[999], "1732185600000 order 99900 50 1 thrift -");
}

TEST_F(HistoryTest, WritesWithoutWaitingForStop) {
  Open();
  Record("order", {{1, 1, 1}});
  EXPECT_TRUE(Eventually(Milliseconds(10'000), [&] { return FileLines().size() == 1; }));
}

TEST_F(HistoryTest, CountsNotesAndLogsDroppedRuns) {
  Open({.queue_bytes_max = 100});
  Record("order", {{1, 1, 1}, {10, 1, 1}, {20, 1, 1}, {30, 1, 1}, {40, 1, 1}});
  Record("order", {{50, 1, 1}});
  Record("order", {{60, 1, 1}});
  Record("order", {{70, 1, 1}});
  history_->Stop();
  const HistoryCounts counts = history_->counts();
  EXPECT_EQ(counts.written + counts.dropped, 8);
  EXPECT_GE(counts.dropped, 5) << "the first call's lines do not all fit";
  EXPECT_EQ(counts.lost, 0);
  int64_t noted = 0;
  for (const std::string& line : FileLines()) {
    if (!line.starts_with('#')) continue;
    EXPECT_THAT(line, HasSubstr("runs are missing here"));
    noted += std::stoll(line.substr(line.find(' ', 2)));
  }
  EXPECT_EQ(noted, counts.dropped);
  ASSERT_FALSE(log_.empty());
  EXPECT_THAT(log_.back(), HasSubstr(std::to_string(counts.dropped) + " runs are not recorded"));
}

TEST_F(HistoryTest, CountsRunsAfterStopAsDropped) {
  Open();
  history_->Stop();
  Record("order", {{1, 1, 1}});
  history_->Stop();
  EXPECT_EQ(history_->counts(), (HistoryCounts{.dropped = 1}));
}

TEST_F(HistoryTest, StartFailsIfTheFileCannotBeOpened) {
  Open({.file = {.path = dir_ / "no/such/folder"}});
  EXPECT_EQ(started_.code(), Code::kNotFound);
  Record("order", {{1, 1, 1}});
  EXPECT_EQ(history_->counts().dropped, 1);
}

TEST_F(HistoryTest, StartFailsIfAnotherProcessWritesTheFile) {
  Open();
  ASSERT_TRUE(started_.ok());
  History second(clock_, {.file = {.path = path_}});
  const Status refused = second.Start();
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_THAT(refused.message(), HasSubstr("a file of its own"));
  history_->Stop();
  EXPECT_TRUE(second.Start().ok());
}

TEST_F(HistoryTest, CountsAndLogsAFullDiskAndRecovers) {
  const std::string folder = dir_ / "disk";
  std::filesystem::create_directory(folder);
  // Every append needs a new file, but its folder is missing: the effect of a full disk.
  Open({.file = {.path = folder + "/history", .bytes_max = 1, .files_max = 2}});
  ASSERT_EQ(started_, Status());
  Record("order", {{1, 1, 1}});
  ASSERT_TRUE(Eventually(Milliseconds(10'000), [&] { return history_->counts().written == 1; }));
  std::filesystem::remove_all(folder);
  Record("order", {{2, 1, 1}, {20, 1, 1}});
  ASSERT_TRUE(Eventually(Milliseconds(10'000), [&] { return history_->counts().lost == 2; }));
  std::filesystem::create_directory(folder);
  Record("order", {{3, 1, 1}});
  history_->Stop();
  EXPECT_THAT(FileLines(folder + "/history"), ElementsAre("# 1732185600000 2 runs are missing here",
                                                          "1732185600000 order 3 1 1 thrift -"));
  EXPECT_EQ(history_->counts(), (HistoryCounts{.written = 2, .lost = 2}));
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_THAT(log_[0],
              HasSubstr("2 runs are not recorded, 2 of them because the file was not writable"));
}

TEST_F(HistoryTest, ConcurrentCallsLoseNoRunsWhileThereIsSpace) {
  Open({.queue_bytes_max = 16 << 20});
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int64_t i = 0; i < 500; ++i) Record("order", {{t * 1000 + i, 1, 1}, {1'000'000, 2, 3}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  history_->Stop();
  EXPECT_EQ(history_->counts(), (HistoryCounts{.written = 8000}));
  std::set<std::string> firsts;
  for (const std::string& line : FileLines()) firsts.insert(line);
  EXPECT_EQ(firsts.size(), 4001u);
}

// The busy thread neither starts nor allocates during a fork. Otherwise the child could inherit a
// sanitizer's heap whose lock is held.
TEST_F(HistoryTest, AForkedChildRecordsNothingAndCanExit) {
  Open();
  std::atomic<bool> stop = false;
  std::latch running{1};
  std::thread busy([&] {
    Runs runs;
    runs.Add({1, 1, 1});
    HistoryPlugin plugin(history_, "order");
    const Request request{.tag = "order", .count = 1};
    plugin.After(request, runs);
    running.count_down();
    while (!stop) plugin.After(request, runs);
  });
  running.wait();
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // ends a child that hangs
      Record("child", {{1, 1, 1}});
      history_->Stop();
      history_.reset();
      _exit(0);
    }
    int state = 0;
    ASSERT_EQ(waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << state;
  }
  stop = true;
  busy.join();
  history_->Stop();
  for (const std::string& line : FileLines()) {
    ASSERT_THAT(line, ::testing::Not(HasSubstr("child")));
  }
}

}  // namespace
}  // namespace firn
