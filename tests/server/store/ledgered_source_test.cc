#include "server/store/ledgered_source.h"

#include <deque>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/server/store/ledger_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A store that does what the test says, and records its calls.
class ScriptedStore final : public RangeStore {
 public:
  struct Script {
    std::function<Status()> check = [] { return Status(); };
    std::function<Result<Range>(int64_t, int64_t)> advance = [](int64_t at_least, int64_t size) {
      return Range{at_least, at_least + size};
    };
    bool stands_in = false, away = false;
    std::vector<LedgerWord> heard{};
    int checks = 0;
    std::vector<int64_t> asked_from;
    std::vector<std::thread::id> threads;
  };

  explicit ScriptedStore(Script& script) : script_(script) {}

  std::string_view name() const override { return "own"; }
  void Listen(const LedgerWord& word) override { script_.heard.push_back(word); }
  bool permits_stand_in() const override { return script_.stands_in; }
  bool away() const override { return script_.away; }
  Status Check(const TagDefinition&) override {
    ++script_.checks;
    script_.threads.push_back(std::this_thread::get_id());
    return script_.check();
  }
  Result<Range> Advance(const TagDefinition&, int64_t at_least, int64_t size) override {
    script_.asked_from.push_back(at_least);
    script_.threads.push_back(std::this_thread::get_id());
    return script_.advance(at_least, size);
  }

 private:
  Script& script_;
};

// A source with a scripted store on one thread, and the ledger of one of two servers.
class LedgeredSourceTest : public testing::Test {
 protected:
  Result<Range> Take(int64_t size = 10) { return Take(Tag(), size); }
  Result<Range> Take(const TagDefinition& tag, int64_t size = 10) {
    std::optional<Result<Range>> told;
    source_.Take(tag, size, [&](Result<Range> range) { told = std::move(range); });
    const bool answered = host_.Until([&] {
      while (!tasks_.empty()) {
        const std::function<void()> task = std::move(tasks_.front());
        tasks_.pop_front();
        task();
      }
      return told.has_value();
    });
    return answered ? *told : Internal("no answer");
  }
  static TagDefinition Tag() { return {.name = "order", .strategy = "segment", .store = "own"}; }

  LedgerCluster cluster_;
  LedgerHost host_{cluster_}, other_{cluster_};
  ScriptedStore::Script script_;
  bool full_ = false;
  std::deque<std::function<void()>> tasks_;
  LedgeredSource source_{std::make_unique<ScriptedStore>(script_), host_.ledger(),
                         [this](std::function<void()> task) { tasks_.push_back(std::move(task)); },
                         cluster_.clock(),
                         [this](std::function<void()> task) {
                           if (!full_) tasks_.push_back(std::move(task));
                           return !full_;
                         }};
};

TEST_F(LedgeredSourceTest, CoversTheStoresRangeBeforeItAnswers) {
  EXPECT_EQ(*Take(), (Range{1, 11}));
  EXPECT_EQ(cluster_.High("order"), 11);
  EXPECT_EQ(*Take(), (Range{11, 21}));
  EXPECT_THAT(script_.asked_from, ElementsAre(1, 11));
  EXPECT_EQ(script_.checks, 1) << "once per tag";
  EXPECT_EQ(source_.wasted("order"), 0);
}

TEST_F(LedgeredSourceTest, RefusesARangeThatWasNotRequested) {
  ASSERT_TRUE(Take().ok());
  const Range kLies[] = {{5, 15}, {11, 11}, {20, 11}, {11, 22}, {-5, 0}, {10, 11}};
  for (const Range lie : kLies) {
    script_.advance = [lie](int64_t, int64_t) { return lie; };
    const auto refused = Take();
    EXPECT_EQ(refused.code(), Code::kCorrupt) << lie.begin << " " << lie.end;
    EXPECT_THAT(refused.status().message(), HasSubstr("store own"));
  }
  EXPECT_EQ(cluster_.High("order"), 11);
}

TEST_F(LedgeredSourceTest, AnExceptionOfTheStoreIsAFailure) {
  script_.advance = [](int64_t, int64_t) -> Result<Range> { throw std::runtime_error("no luck"); };
  const auto thrown = Take();
  EXPECT_EQ(thrown.code(), Code::kUnknown);
  EXPECT_THAT(thrown.status().message(), HasSubstr("no luck"));
  script_.advance = [](int64_t, int64_t) -> Result<Range> { throw 7; };
  EXPECT_EQ(Take().code(), Code::kUnknown);
  script_.advance = ScriptedStore::Script().advance;
  EXPECT_TRUE(Take().ok());
}

TEST_F(LedgeredSourceTest, ChecksARefusedTagAgainTheNextTime) {
  script_.check = []() -> Status { throw 7; };
  EXPECT_EQ(Take().code(), Code::kUnknown);
  script_.check = [] { return Invalid("no such row"); };
  EXPECT_EQ(Take().code(), Code::kInvalid);
  EXPECT_TRUE(script_.asked_from.empty());
  script_.check = [] { return Status(); };
  EXPECT_TRUE(Take().ok());
  EXPECT_EQ(script_.checks, 3);
}

TEST_F(LedgeredSourceTest, WastesAnOvertakenRangeAndRequestsAnother) {
  bool first = true;
  script_.advance = [&](int64_t at_least, int64_t size) {
    const bool overtaken = !std::exchange(first, false) || other_.Extend(5).ok();
    EXPECT_TRUE(overtaken);
    return Range{at_least, at_least + size};
  };
  EXPECT_EQ(*Take(), (Range{6, 16}));
  EXPECT_EQ(source_.wasted("order"), 10);
  EXPECT_EQ(source_.wasted("user"), 0);
}

TEST_F(LedgeredSourceTest, GivesUpAfterTooManyOvertakenRanges) {
  script_.advance = [&](int64_t at_least, int64_t size) {
    EXPECT_TRUE(other_.Extend(1).ok());
    return Range{at_least, at_least + size};
  };
  EXPECT_EQ(Take().code(), Code::kUnavailable);
  EXPECT_EQ(script_.asked_from.size(), size_t{LedgeredSource::kTriesMax});
  EXPECT_EQ(source_.wasted("order"), 10 * LedgeredSource::kTriesMax);
}

TEST_F(LedgeredSourceTest, WastesARangeOfATagDisabledMeanwhile) {
  ASSERT_TRUE(Take().ok());
  cluster_.Edit("order", [](TagNode& node) { node.tag.disabled = true; });
  EXPECT_EQ(Take().code(), Code::kDenied);
  EXPECT_EQ(script_.asked_from.size(), 2u);
  EXPECT_EQ(source_.wasted("order"), 10);
}

TEST_F(LedgeredSourceTest, ABusyStoreIsUnavailable) {
  full_ = true;
  EXPECT_EQ(Take().code(), Code::kUnavailable);
  EXPECT_TRUE(script_.asked_from.empty());
  full_ = false;
  EXPECT_TRUE(Take().ok());
}

TEST_F(LedgeredSourceTest, TakesNothingBack) {
  std::optional<Status> told;
  source_.GiveBack(Tag(), {1, 2}, [&](Status status) { told = std::move(status); });
  tasks_.front()();
  EXPECT_EQ(told->code(), Code::kInvalid);
}

// --- an unreachable store, and its ledger --------------------------------------------------------

class StandInTest : public LedgeredSourceTest {
 protected:
  StandInTest() {
    script_.stands_in = true;
    Define([](TagDefinition& tag) { tag = Tag(); });
  }

  static TagDefinition Tag() {
    TagDefinition tag = LedgeredSourceTest::Tag();
    tag.when_store_is_away = StoreAway::kLedger;
    return tag;
  }
  void Define(const std::function<void(TagDefinition&)>& edit) {
    cluster_.Edit("order", [&](TagNode& node) {
      const int64_t high = node.tag.high;
      edit(node.tag);
      node.tag.high = high;
    });
  }
  void Fail(bool away) {
    script_.away = away;
    script_.advance = [](int64_t, int64_t) { return Unavailable("no connection"); };
  }
  void ComeBack() {
    script_.away = false;
    script_.advance = ScriptedStore::Script().advance;
  }
};

TEST_F(StandInTest, TheLedgerPicksWhileTheStoreIsAwayAndTheStoreContinuesAbove) {
  ASSERT_EQ(*Take(Tag()), (Range{1, 11}));
  EXPECT_FALSE(source_.stood_in("order").since);
  Fail(true);
  EXPECT_EQ(*Take(Tag()), (Range{11, 21}));
  EXPECT_EQ(*Take(Tag(), 5), (Range{21, 26}));
  EXPECT_EQ(cluster_.High("order"), 26);
  EXPECT_EQ(cluster_.NodeOf("order").stand_in.picked, 11);
  EXPECT_NE(cluster_.NodeOf("order").stand_in.since, WallMs());
  EXPECT_TRUE(source_.stood_in("order").since);
  EXPECT_EQ(source_.stood_in("order").ranges, 2);
  EXPECT_EQ(source_.stood_in("order").numbers, 15);

  ComeBack();
  EXPECT_EQ(*Take(Tag()), (Range{26, 36}));
  EXPECT_EQ(script_.heard.back().picked, 11) << "so that the store knows what it has not lost";
  EXPECT_FALSE(source_.stood_in("order").since);
  EXPECT_EQ(cluster_.NodeOf("order").stand_in, (StandIn{.store = "own", .picked = 36}));
  EXPECT_EQ(*Take(Tag()), (Range{36, 46}));
  EXPECT_FALSE(script_.heard.back().picked);
  EXPECT_FALSE(script_.heard.back().cluster.empty());
  EXPECT_EQ(source_.wasted("order"), 0);
}

TEST_F(StandInTest, ARefusalOfTheStoreIsPassedOn) {
  ASSERT_TRUE(Take(Tag()).ok());
  Fail(false);
  EXPECT_EQ(Take(Tag()).code(), Code::kUnavailable);
  EXPECT_EQ(cluster_.High("order"), 11);
}

TEST_F(StandInTest, RefusesToStandInForAStoreThatNeverGaveARange) {
  Fail(true);
  const auto refused = Take(Tag());
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.status().message(), HasSubstr("no connection"));
  EXPECT_THAT(refused.status().message(),
              HasSubstr("only after the store has given a first range"));
  EXPECT_EQ(cluster_.High("order"), 0);
}

TEST_F(StandInTest, ARangeOfOneStoreDoesNotPermitStandingInForAnother) {
  ASSERT_TRUE(Take(Tag()).ok());
  Define([](TagDefinition& tag) { tag.store = "other"; });
  TagDefinition other = Tag();
  other.store = "other";
  Fail(true);
  EXPECT_FALSE(Take(other).ok()) << "with the cached node";
  EXPECT_THAT(Take(other).status().message(),
              HasSubstr("only after the store has given a first range"));
  EXPECT_EQ(cluster_.High("order"), 11);
}

TEST_F(StandInTest, StopsStandingInAfterAnEditThatTheServerHasNotRead) {
  ASSERT_TRUE(Take(Tag()).ok());
  Define([](TagDefinition& tag) { tag.when_store_is_away = StoreAway::kRefuse; });
  Fail(true);
  EXPECT_EQ(Take(Tag()).code(), Code::kUnavailable);
  EXPECT_EQ(cluster_.High("order"), 11);
}

TEST_F(StandInTest, ARangeOfASharedCounterDoesNotPermitStandingIn) {
  Define([](TagDefinition& tag) { tag.when_store_is_away = StoreAway::kRefuse; });
  ASSERT_TRUE(Take(LedgeredSourceTest::Tag()).ok());
  Define([](TagDefinition& tag) { tag = Tag(); });
  Fail(true);
  EXPECT_EQ(Take(Tag()).code(), Code::kUnavailable);
}

// One server reaches the store, the other does not.
TEST_F(StandInTest, RangesDoNotOverlapIfOnlySomeServersReachTheStore) {
  ASSERT_TRUE(Take(Tag()).ok());
  int64_t high = 11;
  script_.advance = [&](int64_t at_least, int64_t size) {
    std::optional<Result<Range>> told;
    other_.ledger().ExtendForStore(Tag(), 5, WallMs(1), [&](const auto& range) { told = range; });
    EXPECT_TRUE(other_.Until([&] { return told.has_value(); }));
    EXPECT_TRUE(told->ok()) << told->status();
    EXPECT_EQ((*told)->begin, high);
    high = (*told)->end;
    script_.advance = ScriptedStore::Script().advance;
    return Range{at_least, at_least + size};
  };
  EXPECT_EQ(*Take(Tag()), (Range{16, 26})) << "the other server has what was picked meanwhile";
  EXPECT_EQ(source_.wasted("order"), 5) << "of [11, 21), since [11, 16) is not wasted";
}

// Without a `post` the store has a separate thread, and no other thread ever waits for it.
TEST(LedgeredSourceThreadTest, CallsTheStoreOnItsOwnThread) {
  LedgerCluster cluster;
  LedgerHost host(cluster);
  ScriptedStore::Script script;
  std::mutex mutex;
  std::deque<std::function<void()>> tasks;
  LedgeredSource source(
      std::make_unique<ScriptedStore>(script), host.ledger(),
      [&](std::function<void()> task) {
        const std::scoped_lock lock(mutex);
        tasks.push_back(std::move(task));
      },
      cluster.clock());
  std::optional<Result<Range>> told;
  source.Take({.name = "order", .strategy = "segment"}, 10,
              [&](Result<Range> range) { told = std::move(range); });
  ASSERT_TRUE(Eventually(Milliseconds(60'000), [&] {
    std::deque<std::function<void()>> now;
    {
      const std::scoped_lock lock(mutex);
      now.swap(tasks);
    }
    for (const auto& task : now) task();
    host.Round();
    return told.has_value();
  }));
  source.Stop();
  EXPECT_TRUE(told->ok()) << told->status();
  ASSERT_EQ(script.threads.size(), 2u);
  EXPECT_NE(script.threads[0], std::this_thread::get_id());
  EXPECT_EQ(script.threads[0], script.threads[1]);
}

TEST(StoreThreadTest, RunsTasksInOrderAndRefusesWhenFullOrStopped) {
  StoreThread thread;
  std::promise<void> begun, go_on;
  ASSERT_TRUE(thread.Post([&] {
    begun.set_value();
    go_on.get_future().wait();
  }));
  begun.get_future().wait();
  std::vector<size_t> done;
  for (size_t i = 0; i < StoreThread::kQueueMax; ++i) {
    ASSERT_TRUE(thread.Post([&done, i] { done.push_back(i); }));
  }
  EXPECT_FALSE(thread.Post([&done] { done.push_back(0); }));
  go_on.set_value();
  std::promise<void> last;
  ASSERT_TRUE(
      Eventually(Milliseconds(60'000), [&] { return thread.Post([&last] { last.set_value(); }); }));
  last.get_future().wait();
  ASSERT_EQ(done.size(), StoreThread::kQueueMax);
  for (size_t i = 0; i < done.size(); ++i) ASSERT_EQ(done[i], i);
  thread.Stop();
  thread.Stop();
  EXPECT_FALSE(thread.Post([] {}));
}

}  // namespace
}  // namespace firn
