#include "server/store/redis/tiered_source.h"

#include <atomic>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/server/store/tiered_server.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// One ledger for all tags.
class Ledgers final : public FakeLedgers {
 public:
  explicit Ledgers(std::string cluster = "a cluster", int64_t high = 1)
      : cluster_(std::move(cluster)), high_(high) {}

  Result<LedgerPlace> Where(const std::string&) const override {
    const std::scoped_lock lock(mutex_);
    if (!failure_.ok()) return failure_;
    return LedgerPlace{.cluster = cluster_, .begin = high_};
  }
  Result<Range> Extend(const std::string&, int64_t size) override {
    const std::scoped_lock lock(mutex_);
    if (!failure_.ok()) return failure_;
    ++segments_;
    high_ += size;
    return Range{high_ - size, high_};
  }
  void Fail(Status failure) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::move(failure);
  }
  int64_t high() const {
    const std::scoped_lock lock(mutex_);
    return high_;
  }
  int segments() const {
    const std::scoped_lock lock(mutex_);
    return segments_;
  }

 private:
  const std::string cluster_;
  mutable std::mutex mutex_;
  Status failure_;
  int64_t high_;
  int segments_ = 0;
};

// A server with one tag.
class Host {
 public:
  Host(int redis_port, Ledgers& ledgers, Milliseconds time_limit = Milliseconds(30'000))
      : server_(redis_port, ledgers, time_limit,
                [this](const std::string& sentence) { alarms.push_back(sentence); }) {}

  Result<Range> Take(int64_t size = 1) { return server_.Take(tag, size); }
  // Repeats until there are numbers.
  Range Numbers(int64_t size = 1) {
    Result<Range> range = Unavailable("");
    EXPECT_TRUE(Eventually(kPatience, [&] { return (range = Take(size)).ok(); })) << range.status();
    return range.value_or({});
  }
  TieredSource& source() { return server_.source(); }
  // Acts as the ledger's owner after the ledger has fallen.
  void Distrust() {
    std::promise<void> done;
    ASSERT_TRUE(server_.control().Post([&] {
      source().Distrust(tag.name);
      done.set_value();
    }));
    done.get_future().wait();
  }

  TagDefinition tag{.name = "order", .strategy = "segment", .step = 20};
  std::vector<std::string> alarms;  // on the control thread

 private:
  TieredServer server_;
};

class TieredSourceTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Redis::Start({.append_only = false});
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
  }

  std::unique_ptr<Redis> server_;
  Ledgers ledgers_;
};

TEST_F(TieredSourceTest, NumbersRiseOverAllServers) {
  constexpr int kHosts = 3;
  constexpr int kEach = 300;
  std::atomic<int64_t> answered = 0;  // the highest number that any thread has got
  std::atomic<int64_t> count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kHosts; ++i) {
    threads.emplace_back([&] {
      Host host(server_->port(), ledgers_);
      for (int n = 0; n < kEach; ++n) {
        const int64_t before = answered;
        const Range got = host.Numbers();
        EXPECT_GT(got.begin, before);
        count += got.size();
        for (int64_t seen = answered; seen < got.begin;) {
          if (answered.compare_exchange_weak(seen, got.begin)) break;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, kHosts * kEach);
}

TEST_F(TieredSourceTest, FillsAnEmptyRedisAtOnceAndRefillsItAhead) {
  Host host(server_->port(), ledgers_);
  EXPECT_EQ(host.Numbers(5), (Range{1, 6}));  // a tenth of the segment is used: the next is fetched
  EXPECT_TRUE(Eventually(kPatience, [&] { return ledgers_.high() == 1 + 20 + 40; }));
  EXPECT_EQ(host.Numbers(100), (Range{6, 21}));
  EXPECT_EQ(host.Numbers(100).begin, 21);
}

TEST_F(TieredSourceTest, NumbersContinueAboveOldOnesAfterRedisLostData) {
  Host host(server_->port(), ledgers_);
  const std::function<Status()> kBlows[] = {
      [&] { return server_->Flush(); },
      [&] {
        server_->Kill();
        return server_->Restart();
      },
      [&] { return server_->Replace(); },
  };
  int64_t end = host.Numbers(5).end;
  for (const auto& blow : kBlows) {
    ASSERT_EQ(blow(), Status());
    const Range range = host.Numbers(5);
    EXPECT_GT(range.begin, end);  // the rest of the segment is not used either
    end = range.end;
  }
  EXPECT_THAT(host.alarms, IsEmpty());
}

TEST_F(TieredSourceTest, CountsNumbersThatRedisLostAsWaste) {
  Host host(server_->port(), ledgers_);
  ASSERT_EQ(host.Numbers(1), (Range{1, 2})) << "too few for a prefetch of the next segment";
  EXPECT_EQ(host.source().wasted("order"), 0);
  ASSERT_EQ(server_->Flush(), Status());
  const Range next = host.Numbers(1);
  EXPECT_EQ(next.begin, 21);
  EXPECT_EQ(host.source().wasted("order"), 19);
  server_->Kill();
  ASSERT_EQ(server_->Restart(), Status());
  const int64_t before = ledgers_.high();
  EXPECT_GE(host.Numbers(1).begin, before);
  EXPECT_EQ(host.source().wasted("order"), 19 + before - next.end);
}

TEST_F(TieredSourceTest, ClearsARestoredHashWithAnAlarm) {
  Host host(server_->port(), ledgers_);
  const Range first = host.Numbers(5);
  const auto saved = server_->Run({"HGET", "firn:order:tiered", "cur"});
  const Range second = host.Numbers(5);
  ASSERT_EQ(first.end, second.begin);
  // The result of a restore from a copy: the hash is consistent in itself.
  ASSERT_TRUE(server_->Run({"HSET", "firn:order:tiered", "cur", *saved, "left", "15"}).ok());
  const int64_t ledger = ledgers_.high();
  EXPECT_GE(host.Numbers(5).begin, ledger);
  EXPECT_THAT(host.alarms, SizeIs(1));
}

TEST_F(TieredSourceTest, ALostAnswerWastesNumbersAndRepeatsNone) {
  TcpProxy proxy(server_->port());
  Host host(proxy.port(), ledgers_, Milliseconds(500));
  const Range first = host.Numbers(1);  // too few for a prefetch of the next segment
  proxy.DropAnswers(true);
  EXPECT_EQ(host.Take(1).code(), Code::kUnknown);
  proxy.DropAnswers(false);
  EXPECT_GT(host.Numbers(1).begin, first.end);
}

TEST_F(TieredSourceTest, GivesOnlyTheHashsNumbersWithoutTheDurableSide) {
  Host host(server_->port(), ledgers_);
  ASSERT_EQ(host.Numbers(1), (Range{1, 2}));
  ledgers_.Fail(Unavailable("the registry is away"));
  EXPECT_EQ(host.Numbers(100), (Range{2, 21}));
  EXPECT_FALSE(host.Take(1).ok());
  // Until then, the segment that this server failed to fetch may still arrive.
  EXPECT_TRUE(Eventually(kPatience, [&] { return host.Take(1).code() == Code::kUnavailable; }));
  ledgers_.Fail(Status());
  EXPECT_EQ(host.Numbers(1).begin, 21);
}

TEST_F(TieredSourceTest, TwoClustersOnOneRedisDoNotShareNumbers) {
  Ledgers theirs("another cluster", 1);
  Ledgers ours("a cluster", 1'000);
  Host us(server_->port(), ours), them(server_->port(), theirs);
  EXPECT_EQ(us.Numbers(5), (Range{1'000, 1'005}));
  EXPECT_EQ(them.Take(5).code(), Code::kInvalid);
  EXPECT_EQ(theirs.segments(), 0) << "refused before a segment was taken";
  ASSERT_EQ(server_->Flush(), Status());
  EXPECT_EQ(them.Numbers(5), (Range{1, 6}));
  EXPECT_EQ(us.Take(5).code(), Code::kInvalid);
  EXPECT_EQ(us.Take(5).code(), Code::kInvalid);
}

TEST_F(TieredSourceTest, AStoppedTagGivesNothingUntilItsLedgerIsReadAgain) {
  Host host(server_->port(), ledgers_), other(server_->port(), ledgers_);
  ASSERT_EQ(host.Numbers(1), (Range{1, 2}));
  ASSERT_EQ(other.Numbers(1), (Range{2, 3}));
  ledgers_.Fail(Unavailable("the cluster is frozen"));
  host.Distrust();
  EXPECT_EQ(host.Take(1).code(), Code::kUnavailable);
  EXPECT_EQ(other.Numbers(1), (Range{3, 4})) << "this server has not seen the loss";
  ledgers_.Fail(Status());
  EXPECT_GE(host.Numbers(1).begin, 21) << "the old contents of the hash are discarded";
  EXPECT_GE(other.Numbers(1).begin, 21);
}

TEST_F(TieredSourceTest, CountsNumbersForAStoppedTagAsWaste) {
  Host host(server_->port(), ledgers_);
  ASSERT_EQ(host.Numbers(1), (Range{1, 2}));
  server_->Stop();
  std::promise<Status> told;
  host.source().Take(host.tag, 1,
                     [&](const Result<Range>& range) { told.set_value(range.status()); });
  host.Distrust();
  server_->Continue();
  EXPECT_EQ(told.get_future().get().code(), Code::kUnavailable);
  EXPECT_EQ(host.source().wasted("order"), 1);
}

TEST_F(TieredSourceTest, TheLedgerStaysUnchangedAtTheEndOfTheNumbers) {
  Ledgers high("a cluster", TieredHash::kNumbersEnd - 5);
  Host host(server_->port(), high);
  EXPECT_EQ(host.Numbers(5).end, TieredHash::kNumbersEnd);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(host.Take(1).code(), Code::kExhausted);
  Host other(server_->port(), high);
  EXPECT_TRUE(Eventually(kPatience, [&] { return other.Take(1).code() == Code::kExhausted; }));
  EXPECT_EQ(high.segments(), 1);
  EXPECT_EQ(high.high(), TieredHash::kNumbersEnd);
}

TEST_F(TieredSourceTest, RefusesToTakeATailBack) {
  Host host(server_->port(), ledgers_);
  const Range range = host.Numbers(5);
  std::promise<Status> told;
  host.source().GiveBack(host.tag, range, [&](Status status) { told.set_value(status); });
  EXPECT_EQ(told.get_future().get().code(), Code::kInvalid);
}

TEST(NextSegmentSizeTest, GrowsAndShrinksWithinTheTagsLimits) {
  const TagDefinition tag{
      .name = "order", .strategy = "segment", .step = 100, .step_max = 1000, .hold_minutes = 10};
  const struct {
    int64_t step;
    int lasts_minutes;
    int64_t next;
  } kCases[] = {{0, 0, 100},    {100, 9, 200},  {100, 10, 100}, {100, 20, 100},
                {400, 21, 200}, {150, 21, 100}, {600, 1, 1000}, {5000, 15, 1000}};
  for (const auto& one : kCases) {
    EXPECT_EQ(NextSegmentSize(tag, one.step, std::chrono::minutes(one.lasts_minutes)), one.next)
        << one.step << " " << one.lasts_minutes;
  }
}

}  // namespace
}  // namespace firn
