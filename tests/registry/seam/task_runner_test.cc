#include "registry/seam/task_runner.h"

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/seam/async_registry.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using Log = std::vector<std::string>;

// A registry that can delay answers, and tasks that log their results. All strings are too long for
// the small-string buffer, so that the sanitizer detects a double destruction.
class TaskRunnerTest : public testing::Test {
 protected:
  TaskRunnerTest()
      : link_(std::make_unique<MemoryCoordinator>(tree_), clock_), async_registry_(link_) {
    link_.Dispatch(kNow);
    Task<> made = Make("/", "the root node, which is long enough to be allocated somewhere");
    async_registry_.Start(made);
    Round();
    Told();
  }

  void Round(Milliseconds passed = Milliseconds(1)) {
    clock_.Advance(passed);
    link_.Dispatch(kNow);
    async_registry_.Tick(clock_.Boot());
  }
  void Note(std::string what) { log_.push_back(std::move(what)); }
  Log Told() { return std::exchange(log_, {}); }

  Task<> Make(std::string path, std::string data) {
    const std::vector<Write> writes{Write::Create(path, data, Lifetime::kPersistent)};
    Written written = co_await async_registry_.Multi(writes);
    Note(written.fate == Written::Fate::kDone ? "made " + path : written.status.message());
  }
  Task<std::string> DataOf(std::string path) {
    Result<Node> node = co_await async_registry_.Read(path);
    co_return node.ok() ? node->data : std::string(CodeName(node.code()));
  }
  Task<> Show(std::string name, std::string path) {
    Note(name + " asks");
    std::string data = co_await DataOf(path);
    Note(name + ": " + data.substr(0, 13));
  }
  Task<> Sleep(std::string name, BootMs until) {
    Waited waited = co_await async_registry_.Until(until);
    switch (waited) {
      case Waited::kOver:
        co_return Note(name + " is over");
      case Waited::kConnectionLost:
        co_return Note(name + " is cut short");
      case Waited::kStopped:
        co_return Note(name + " is stopped");
    }
  }
  Task<int> Deep(int levels) {
    if (levels == 0) co_return 0;
    const int fewer = levels - 1;
    int below = co_await Deep(fewer);
    co_return below + 1;
  }
  Task<> CountDeep(int* count) {
    // Nested resumes would overflow the stack.
    for (int i = 0; i < 200'000; ++i) {
      const int levels = 1;
      int one = co_await Deep(levels);
      *count += one;
    }
  }

  Task<Written> Send(std::vector<Write> writes) {
    Written written = co_await async_registry_.Multi(writes);
    co_return written;
  }
  Task<> ReadBy(AsyncRegistry* async_registry, std::string path) {
    Result<Node> node = co_await async_registry->Read(path);
    Note(node.ok() ? node->data : "nothing");
  }
  Task<> Kill(std::optional<Task<>>* other) {
    other->reset();
    co_return;
  }
  Task<> Nest() {
    async_registry_.Tick(async_registry_.now());
    co_return;
  }
  Task<std::string> Throw(std::string path) {
    std::string data = co_await DataOf(path);
    if (!data.empty()) throw std::runtime_error(data);
    co_return data;
  }
  Task<> AwaitThrow() {
    const std::string path = "/";
    const std::string kept = "what the frame keeps is destroyed with it, and only once";
    std::string data = co_await Throw(path);
    Note(kept + data);
  }

  static constexpr Milliseconds kNow{0};
  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  FaultyCoordinator link_;
  AsyncRegistry async_registry_;
  Log log_;
};

TEST_F(TaskRunnerTest, DoesNothingBeforeItIsStarted) {
  {
    const Task<> never = Show("a", "/");
    Round();
  }
  EXPECT_EQ(Told(), (Log{}));
  Task<> later = Show("a", "/");
  EXPECT_FALSE(later.busy());
  async_registry_.Start(later);
  EXPECT_TRUE(later.busy());
  EXPECT_EQ(Told(), Log{"a asks"});
}

TEST_F(TaskRunnerTest, ResumesInTheTickAndNotInTheAnswer) {
  Task<> task = Show("a", "/");
  async_registry_.Start(task);
  link_.Dispatch(kNow);
  EXPECT_EQ(Told(), Log{"a asks"});
  async_registry_.Tick(clock_.Boot());
  EXPECT_EQ(Told(), Log{"a: the root node"});
  EXPECT_TRUE(task.done());
}

TEST_F(TaskRunnerTest, ResumesInTheOrderOfTheAnswers) {
  link_.Script(Verb::kRead, {Fate::Kind::kDone, {}, Milliseconds(5)});
  Task<> slow = Show("slow", "/");
  Task<> fast = Show("fast", "/");
  Task<> none = Show("none", "/nothing");
  for (Task<>* task : {&slow, &fast, &none}) async_registry_.Start(*task);
  Told();
  clock_.Advance(Milliseconds(4));
  link_.Dispatch(kNow);
  clock_.Advance(Milliseconds(5));
  link_.Dispatch(kNow);
  async_registry_.Tick(clock_.Boot());
  EXPECT_EQ(Told(), (Log{"fast: the root node", "none: not found", "slow: the root node"}));
}

TEST_F(TaskRunnerTest, ResumesAnswersBeforeTimers) {
  Task<> sleeper = Sleep("sleep", clock_.Boot() + Milliseconds(1));
  Task<> asker = Show("a", "/");
  async_registry_.Start(sleeper);
  async_registry_.Start(asker);
  Told();
  Round(Milliseconds(1));
  EXPECT_EQ(Told(), (Log{"a: the root node", "sleep is over"}));
}

TEST_F(TaskRunnerTest, AWaitEndsAtItsTimeAndNotBefore) {
  Task<> sleeper = Sleep("sleep", clock_.Boot() + Milliseconds(10));
  async_registry_.Start(sleeper);
  Round(Milliseconds(9));
  EXPECT_EQ(Told(), Log{});
  Round(Milliseconds(1));
  EXPECT_EQ(Told(), Log{"sleep is over"});
  Task<> past = Sleep("past", clock_.Boot());
  async_registry_.Start(past);
  EXPECT_EQ(Told(), Log{"past is over"});
}

TEST_F(TaskRunnerTest, AwaitingATaskThatNeverWaitsContinuesAtOnceWithoutNesting) {
  int count = 0;
  Task<> task = CountDeep(&count);
  async_registry_.Start(task);
  EXPECT_EQ(count, 200'000);
  Task<int> deep = Deep(10'000);
  async_registry_.Start(deep);
  EXPECT_EQ(deep.Take(), 10'000);
}

TEST_F(TaskRunnerTest, ADestroyedTaskGetsNoAnswer) {
  for (const bool answered : {false, true}) {
    std::optional<Task<>> gone(Show("gone", "/"));
    Task<> stays = Show("stays", "/");
    async_registry_.Start(*gone);
    async_registry_.Start(stays);
    Told();
    if (answered) link_.Dispatch(kNow);
    gone.reset();
    Round();
    EXPECT_EQ(Told(), Log{"stays: the root node"});
  }
}

TEST_F(TaskRunnerTest, ADestroyedTaskDoesNotWakeUp) {
  std::optional<Task<>> gone(Sleep("gone", clock_.Boot() + Milliseconds(5)));
  async_registry_.Start(*gone);
  gone.reset();
  Round(Milliseconds(10));
  EXPECT_EQ(Told(), Log{});
}

TEST_F(TaskRunnerTest, AReplacedTaskDropsItsAnswers) {
  Task<> task = Show("first", "/");
  async_registry_.Start(task);
  task = Show("second", "/");
  async_registry_.Start(task);
  Told();
  Round();
  EXPECT_EQ(Told(), Log{"second: the root node"});
}

TEST_F(TaskRunnerTest, AnAnswerAfterTheRunnersEndIsDropped) {
  auto async_registry = std::make_unique<AsyncRegistry>(link_);
  std::optional<Task<>> task(ReadBy(async_registry.get(), "/"));
  async_registry->Start(*task);
  task.reset();
  async_registry.reset();
  link_.Dispatch(kNow);
}

TEST_F(TaskRunnerTest, ALostConnectionAnswersPendingRequests) {
  for (const Verb verb : {Verb::kRead, Verb::kMulti}) {
    link_.Script(verb, {Fate::Kind::kDone, {}, Milliseconds(50)});
  }
  Task<std::string> read = DataOf("/");
  Task<Written> write = Send({Write::Create("/x", "x", Lifetime::kPersistent)});
  async_registry_.Start(read);
  async_registry_.Start(write);
  link_.Disconnect();
  Round();
  EXPECT_EQ(read.Take(), CodeName(Code::kUnavailable));
  EXPECT_EQ(write.Take().fate, Written::Fate::kUnknown) << "it had been sent";
}

TEST_F(TaskRunnerTest, DistinguishesTheFatesOfAWrite) {
  using Kind = Written::Fate;
  const std::vector<Write> writes{Write::Check("/", 0),
                                  Write::Create("/x", "x", Lifetime::kPersistent)};
  const auto fate = [&] {
    Task<Written> sent = Send(writes);
    async_registry_.Start(sent);
    for (int i = 0; i < 10 && sent.busy(); ++i) Round(Milliseconds(100));
    return sent.Take();
  };
  EXPECT_EQ(fate().fate, Kind::kDone);
  const Written refused = fate();
  EXPECT_EQ(refused.fate, Kind::kRefused);
  EXPECT_EQ(refused.failed, 1);
  link_.Script(Verb::kMulti, {Fate::Kind::kRequestLost, {}, Milliseconds(100)});
  EXPECT_EQ(fate().fate, Kind::kUnknown);
  link_.Disconnect();
  EXPECT_EQ(fate().fate, Kind::kNotSent);
}

TEST_F(TaskRunnerTest, ALostConnectionEndsCurrentWaitsAndAStopEndsAllWaits) {
  const BootMs later = clock_.Boot() + Milliseconds(1'000);
  Task<> first = Sleep("first", later);
  async_registry_.Start(first);
  async_registry_.LoseConnection();
  EXPECT_EQ(Told(), Log{}) << "it ends in the next tick";
  Round();
  EXPECT_EQ(Told(), Log{"first is cut short"});
  Task<> second = Sleep("second", later);
  async_registry_.Start(second);
  Round();
  EXPECT_EQ(Told(), Log{});
  async_registry_.Stop();
  Round();
  Task<> third = Sleep("third", later);
  async_registry_.Start(third);
  EXPECT_EQ(Told(), (Log{"second is stopped", "third is stopped"}));
}

TEST_F(TaskRunnerTest, AReadInAnEndedSessionFails) {
  Task<Result<Nodes>> reading = async_registry_.ReadSynced({"/", "/nothing"});
  async_registry_.Start(reading);
  Round();
  const Result<Nodes> nodes = reading.Take();
  ASSERT_TRUE(nodes.ok());
  EXPECT_TRUE(nodes->front().has_value());
  EXPECT_FALSE(nodes->back().has_value());
  reading = async_registry_.ReadSynced({"/"});
  async_registry_.Start(reading);
  tree_.Expire(link_.session());
  Round();
  EXPECT_EQ(reading.Take().code(), Code::kUnavailable);
}

// --- what ends the process -----------------------------------------------------------------------

TEST_F(TaskRunnerTest, DestroyingATaskInsideItselfEndsTheProcess) {
  std::optional<Task<>> task(Show("a", "/"));
  EXPECT_DEATH(
      {
        Task<> killer = Kill(&task);
        async_registry_.Start(*task);
        async_registry_.Start(killer);
        Round();
      },
      "a task was destroyed while tasks run");
}

TEST_F(TaskRunnerTest, ResumingInsideAResumeEndsTheProcess) {
  Task<> nested = Nest();
  EXPECT_DEATH(async_registry_.Start(nested), "a task was resumed inside another");
}

TEST_F(TaskRunnerTest, AnExceptionLeavesThroughTheTickAndEndsTheRunner) {
  std::optional<Task<>> parent(AwaitThrow());
  std::optional<Task<>> other(Show("other", "/"));
  async_registry_.Start(*other);
  async_registry_.Start(*parent);
  Told();
  EXPECT_THROW(Round(), std::runtime_error);
  EXPECT_DEATH(
      {
        Task<> next = Show("next", "/");
        async_registry_.Start(next);
      },
      "after an exception");
  parent.reset();
  other.reset();
}

}  // namespace
}  // namespace firn
