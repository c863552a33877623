// Edits a segment tag of whole servers in every possible way while callers of each server, and a
// program that prefetches ranges, take numbers of it.

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "client/client.h"
#include "client/local_ranges.h"
#include "tests/drill/segment_cluster.h"
#include "tests/support/database/range_tables.h"

namespace firn {
namespace {

// The tag that has a row in Leaf's table.
constexpr const char* kTag = "leaf";

// Threads of one program whose client keeps ranges of the tag in memory.
class LocalCallers {
 public:
  LocalCallers(const std::string& servers, Takings& takings)
      : client_({.servers = servers,
                 .deadline = Milliseconds(5'000),
                 .attempt_limit = Milliseconds(2'000),
                 .local_ranges = LocalRanges({LocalTag::Segment(kTag)})}) {
    for (int i = 0; i < kThreads; ++i) {
      threads_.emplace_back([this, &takings](const std::stop_token& stop) { Run(stop, takings); });
    }
  }

  int64_t taken() const { return taken_; }
  // Returns the count of numbers that came from memory.
  uint64_t from_memory() const { return client_.local()->counts().taken; }

 private:
  static constexpr int kThreads = 2;

  void Run(const std::stop_token& stop, Takings& takings) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < 20; ++i) {
        const Result<int64_t> id = client_.GetId(kTag);
        if (!id.ok()) break;
        takings.Add({*id, 1}, 0);
        ++taken_;
      }
      SleepFor(Milliseconds(2));
    }
  }

  Client client_;
  std::atomic<int64_t> taken_{0};
  std::vector<std::jthread> threads_;
};

class ChangeDrill : public SegmentCluster {
 protected:
  static constexpr int kServers = 2;

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartStores());
    // Stores create rows only for new tags; this tag already has numbers when it moves to them.
    ASSERT_EQ(mariadb().Run(InsertRowSql(TableForm::kFirn, "firn_tag", kTag, 1)), Status());
    ASSERT_EQ(postgres().Run(InsertRowSql(TableForm::kFirn, "firn_tag", kTag, 1)), Status());
    ASSERT_NO_FATAL_FAILURE(
        ApplyTags(std::string("[") + kTag + "]\nstrategy = segment\nstep = 20\nstep_max = 200\n"));
    ASSERT_NO_FATAL_FAILURE(StartServers(kServers, {"--issue_wait_ms=1000"}));
  }

  std::string List() { return "list://" + servers()[0]->address() + "," + servers()[1]->address(); }

  // Returns how often the server has logged `what` about the tag.
  size_t Said(size_t server, const std::string& what) {
    const std::string log = servers()[server]->log(), line = what + " tag " + kTag;
    size_t count = 0;
    for (size_t at = log.find(line); at != std::string::npos; at = log.find(line, at + 1)) ++count;
    return count;
  }

  // Makes an edit, and waits until every server logs `what` about it.
  void Edit(const std::vector<std::string>& lines, const std::string& what = "serving") {
    std::vector<size_t> before;
    for (size_t i = 0; i < kServers; ++i) before.push_back(Said(i, what));
    std::vector<std::string> command{"tags", "set", kTag};
    command.insert(command.end(), lines.begin(), lines.end());
    const Finished edited = Firn(command);
    ASSERT_EQ(edited.exit_code, 0) << edited.err;
    for (size_t i = 0; i < kServers; ++i) {
      ASSERT_TRUE(Eventually(kPatience, [&] { return Said(i, what) > before[i]; }))
          << lines[0] << ": " << servers()[i]->log();
    }
  }

  // Waits until all callers get more numbers, including the program that prefetches ranges.
  testing::AssertionResult AllGoOn(const LocalCallers& local) {
    const int64_t before = local.taken();
    if (auto others = GoOn({kTag}); !others) return others;
    if (Eventually(kPatience, [&] { return local.taken() >= before + 20; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "the program gets no more numbers";
  }
};

TEST_F(ChangeDrill, EditsUnderLoadRepeatNoNumber) {
  StartLoad({.tags = {kTag}, .threads = 3, .count = 3, .awkward = kTag});
  {
    const LocalCallers local(List(), takings(kTag));
    ASSERT_TRUE(AllGoOn(local));
    const std::vector<std::vector<std::string>> kEdits{
        {"store=main", "step=7", "step_max=30"},
        {"store=alloc", "prefetch_at=90"},
        {"store=elephant"},
        {"store=cache"},
        {"step=100", "step_max=1000", "hold_minutes=1", "plugins=rate"},
        {"store=tier"},
        {"buffer=none"},
        {"store=near"},
        {"store=registry"},
        {"store=near", "buffer=double"},
        {"store=registry", "plugins="},
    };
    for (const auto& edit : kEdits) {
      ASSERT_NO_FATAL_FAILURE(Edit(edit));
      ASSERT_TRUE(AllGoOn(local)) << edit[0];
    }

    ASSERT_NO_FATAL_FAILURE(Edit({"disabled=true"}, "refusing"));
    for (const auto& server : servers()) {
      EXPECT_NE(server->Get(std::string("/v1/ids/") + kTag).status, 200);
    }
    ASSERT_NO_FATAL_FAILURE(Edit({"disabled=false"}));
    ASSERT_TRUE(AllGoOn(local)) << "after enabling it again";

    // A call that began after the servers had read the start must get no number below it.
    const int64_t start = LedgerOf(kTag) + 1'000'000;
    ASSERT_NO_FATAL_FAILURE(Edit({"start=" + std::to_string(start)}));
    for (const auto& server : servers()) {
      auto answer = server->Get(std::string("/api/segment/get/") + kTag);
      // The load may have taken all numbers that have arrived. A server then refuses the call.
      EXPECT_TRUE(Eventually(kPatience, [&] {
        if (answer.status != 200) answer = server->Get(std::string("/api/segment/get/") + kTag);
        return answer.status == 200;
      })) << answer.body;
      EXPECT_GE(std::atoll(answer.body.c_str()), start);
    }
    ASSERT_TRUE(AllGoOn(local)) << "above its start";
    EXPECT_GT(local.from_memory(), 0u);
    std::printf(
        "drill of changes: %lld numbers through ranges in a program, %llu from its memory\n",
        static_cast<long long>(local.taken()),
        static_cast<unsigned long long>(local.from_memory()));
  }
  for (const auto& [tag, counts] : StopLoad()) EXPECT_EQ(counts.broken, 0) << counts.last_trouble;
  JudgeTag(kTag);
}

// Callers of one new tag at every server, over HTTP. They record only the ids that they got.
class FreshCallers {
 public:
  FreshCallers(const std::vector<std::unique_ptr<RunningServer>>& servers, std::string tag) {
    for (const auto& server : servers) {
      threads_.emplace_back([this, &server, tag](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          const auto answer = server->Get("/api/segment/get/" + tag);
          if (answer.status != 200) continue;
          const std::lock_guard lock(mutex_);
          ids_.push_back(std::atoll(answer.body.c_str()));
        }
      });
    }
  }
  size_t count() {
    const std::lock_guard lock(mutex_);
    return ids_.size();
  }
  std::vector<int64_t> Stop() {
    threads_.clear();
    return ids_;
  }

 private:
  std::mutex mutex_;
  std::vector<int64_t> ids_;
  std::vector<std::jthread> threads_;
};

class FormDrill : public SegmentCluster {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartStores());
    std::filesystem::create_directory(folder("keys"));
    std::ofstream(folder("keys/k1.key")) << "000102030405060708090a0b0c0d0e0f\n";
    std::filesystem::permissions(folder("keys/k1.key"), std::filesystem::perms::owner_read);
    ASSERT_NO_FATAL_FAILURE(
        StartServers(2, {"--issue_wait_ms=1000", "--key_dir=" + folder("keys")}));
  }
};

// The edit is made at a random time between the tag's creation and its first numbers. Either it is
// refused because plain numbers were issued, or no plain number is ever issued.
TEST_F(FormDrill, NewTagsRedefinedUnderLoadHaveOneForm) {
  constexpr int64_t kPlainMost = 100'000;  // far more numbers than the callers take
  int hidden = 0;
  for (int i = 0; i < 24; ++i) {
    const std::string tag = "fresh" + std::to_string(i);
    ASSERT_EQ(Firn({"tags", "create", tag}).exit_code, 0);
    std::unique_ptr<FreshCallers> callers;
    if (i % 2 == 0) callers = std::make_unique<FreshCallers>(servers(), tag);
    const Finished edit = Firn({"tags", "set", tag, "plugins=obfuscate", "obfuscate.width=18",
                                "obfuscate.key=k1", "obfuscate.check=c6a13b"});
    // The servers read the edit 100 ms later.
    if (!callers) callers = std::make_unique<FreshCallers>(servers(), tag);
    ASSERT_TRUE(Eventually(kPatience, [&] { return callers->count() >= 100; }))
        << servers()[0]->log();
    const std::vector<int64_t> ids = callers->Stop();
    EXPECT_EQ(std::set<int64_t>(ids.begin(), ids.end()).size(), ids.size());
    ASSERT_TRUE(edit.exit_code == 0 || edit.exit_code == 2) << edit.err;
    hidden += edit.exit_code == 0;
    for (const int64_t id : ids) {
      ASSERT_EQ(id > kPlainMost, edit.exit_code == 0) << tag << " gave " << id;
    }
  }
  EXPECT_GE(hidden, 12) << "a tag without calls before the edit can always be redefined";
}

}  // namespace
}  // namespace firn
