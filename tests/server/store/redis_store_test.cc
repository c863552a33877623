#include "server/store/redis/redis_store.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/support/database/redis.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class RedisStoreTest : public testing::Test {
 protected:
  void SetUp() override { server_ = StartServer(); }

  static std::unique_ptr<Redis> StartServer() {
    auto started = Redis::Start({.append_only = true, .sync_always = true});
    EXPECT_TRUE(started.ok()) << started.status();
    return started.ok() ? *std::move(started) : nullptr;
  }

  std::unique_ptr<RedisStore> Open(int port, Milliseconds time_limit = Milliseconds(30'000),
                                   const std::string& credentials = "",
                                   const Clock& clock = SystemClock()) {
    RedisStore::Options options{.name = "cache",
                                .place = {.address = {"127.0.0.1", static_cast<uint16_t>(port)},
                                          .credentials_file = credentials,
                                          .time_limit = time_limit},
                                .backoff = {Milliseconds(10), Milliseconds(50)}};
    return std::make_unique<RedisStore>(
        std::move(options), clock, SystemEntropy(),
        [this](const std::string& sentence) { alarms_.push_back(sentence); });
  }

  void Edit(const std::string& field, const std::string& value) {
    ASSERT_TRUE(server_->Run({"HSET", "firn:order", field, value}).ok());
  }
  std::string Max() { return server_->Run({"HGET", "firn:order", "max"}).value_or("?"); }

  // Connections that programs have made, without the one that each question makes.
  int64_t Connections(Redis& server) {
    return std::stoll(server.Info("total_connections_received")) - ++asked_;
  }

  // Repeats until the store answers, with a ledger's check of the range.
  Range Use(RedisStore& store) {
    Result<Range> range = Unavailable("");
    EXPECT_TRUE(Eventually(kPatience, [&] {
      range = store.Advance(tag_, high_, 10);
      return range.ok();
    })) << range.status();
    if (!range.ok()) return {};
    EXPECT_GE(range->begin, high_);
    high_ = range->end;
    return *range;
  }

  std::unique_ptr<Redis> server_;
  TagDefinition tag_{.name = "order", .strategy = "segment"};
  std::vector<std::string> alarms_;
  int64_t high_ = 1;
  int64_t asked_ = 0;
};

TEST_F(RedisStoreTest, RefusesAnInvalidHashAndLeavesItUnchanged) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  const struct {
    const char* field;
    const char* value;
    const char* sentence;
  } kEdits[] = {
      {"step", "0", "step is '0'"},        {"step", "-5", "step is '-5'"},
      {"step", "x\n", "step is 'x\\x0a'"}, {"max", "-1", "max is '-1'"},
      {"max", "1.5", "max is '1.5'"},      {"max", "4611686018427387904", "max is '46116860"},
      {"max", "9007199254740000", "far"},  {"max", "", "max is ''"},
  };
  for (const auto& edit : kEdits) {
    Edit("step", "10");
    Edit("max", "11");
    Edit(edit.field, edit.value);
    const auto refused = store->Advance(tag_, 11, 10);
    EXPECT_EQ(refused.code(), Code::kCorrupt) << edit.field << " " << edit.value;
    EXPECT_THAT(refused.status().message(), HasSubstr(edit.sentence));
    EXPECT_EQ(server_->Run({"HGET", "firn:order", edit.field}).value_or("?"), edit.value);
  }
  Edit("max", "11");
  EXPECT_EQ(Use(*store), (Range{11, 21}));
  ASSERT_TRUE(server_->Run({"SET", "firn:order", "text"}).ok());
  EXPECT_EQ(store->Advance(tag_, 21, 10).code(), Code::kCorrupt);
}

TEST_F(RedisStoreTest, JumpsOverALowerHashWithAnAlarm) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  Edit("max", "5");
  EXPECT_EQ(Use(*store), (Range{11, 21}));
  ASSERT_THAT(alarms_, SizeIs(1));
  EXPECT_THAT(alarms_[0], HasSubstr("gone back in time, to 5 from 11"));
}

TEST_F(RedisStoreTest, JumpsOverAFlushedOrReplacedServer) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  ASSERT_EQ(server_->Flush(), Status());
  EXPECT_EQ(Use(*store), (Range{11, 21}));
  ASSERT_EQ(server_->Replace(), Status());
  EXPECT_EQ(Use(*store), (Range{21, 31}));
  EXPECT_THAT(alarms_, SizeIs(2));
}

TEST_F(RedisStoreTest, JumpsOverAReplicaPromotedWhileEmptyAndTheOldPrimary) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  const auto other = StartServer();  // not a replica yet
  const auto promoted = Open(other->port());
  EXPECT_EQ(Use(*promoted), (Range{11, 21}));
  EXPECT_EQ(Use(*promoted), (Range{21, 31}));
  EXPECT_EQ(Use(*store), (Range{31, 41}));
  EXPECT_THAT(alarms_, IsEmpty()) << "each has the numbers that it has given";
}

TEST_F(RedisStoreTest, JumpsWithoutAnAlarmOverNumbersOfTheTagsFormerStore) {
  const auto store = Open(server_->port());
  high_ = 5'000;
  EXPECT_EQ(Use(*store), (Range{5'000, 5'010}));
  high_ = 9'000;
  EXPECT_EQ(Use(*store), (Range{9'000, 9'010}));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_F(RedisStoreTest, RefusesAReplicaUntilItIsPromoted) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  const auto replica = StartServer();
  ASSERT_EQ(replica->Follow(*server_), Status());
  const auto other = Open(replica->port());
  EXPECT_EQ(other->Advance(tag_, 11, 10).code(), Code::kUnavailable);
  server_->Kill();
  ASSERT_EQ(replica->Promote(), Status());
  EXPECT_EQ(Use(*other), (Range{11, 21}));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_F(RedisStoreTest, NamesARefusingServerAndRetriesWithBackoff) {
  const auto replica = StartServer();
  ASSERT_EQ(replica->Follow(*server_), Status());
  auto keeper = Redis::Start({.cluster = true}), node = Redis::Start({.cluster = true});
  ASSERT_TRUE(keeper.ok() && node.ok());
  ASSERT_EQ((*node)->JoinCluster(**keeper), Status());
  const struct {
    Redis& server;
    const char* sentence;
  } kCases[] = {{*replica, "takes no writes (READONLY"},
                {**node, "is of a Redis Cluster, which Firn does not use"}};
  for (const auto& refusing : kCases) {
    VirtualClock clock(WallMs(0));
    const auto store = Open(refusing.server.port(), Milliseconds(30'000), "", clock);
    const int64_t before = Connections(refusing.server);
    for (int i = 0; i < 3; ++i) {
      const Status refused = store->Advance(tag_, 11, 10).status();
      EXPECT_EQ(refused.code(), Code::kUnavailable);
      EXPECT_THAT(refused.message(), HasSubstr(refusing.sentence));
    }
    EXPECT_EQ(Connections(refusing.server), before + 1);
    clock.Advance(Milliseconds(10));  // ends the first wait
    EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
    clock.Advance(Milliseconds(9));  // the second is longer
    EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
    EXPECT_EQ(Connections(refusing.server), before + 2);
  }
}

TEST_F(RedisStoreTest, LoadsTheScriptAgainAfterAScriptFlush) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  ASSERT_TRUE(server_->Run({"SCRIPT", "FLUSH"}).ok());
  EXPECT_EQ(Use(*store), (Range{11, 21}));
}

TEST_F(RedisStoreTest, ALostAnswerIsUnknownAndItsRangeIsNotRepeated) {
  TcpProxy proxy(server_->port());
  const auto store = Open(proxy.port(), Milliseconds(500));
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  proxy.DropAnswers(true);
  EXPECT_EQ(store->Advance(tag_, 11, 10).code(), Code::kUnknown);
  EXPECT_TRUE(Eventually(kPatience, [&] { return Max() == "21"; }));
  proxy.DropAnswers(false);
  EXPECT_EQ(Use(*store), (Range{21, 31}));
}

TEST_F(RedisStoreTest, ReconnectsAfterTheServerWasKilled) {
  const auto store = Open(server_->port());
  ASSERT_EQ(Use(*store), (Range{1, 11}));
  server_->Kill();
  EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
  ASSERT_EQ(server_->Restart(), Status());
  EXPECT_EQ(Use(*store).begin, 11);
}

TEST_F(RedisStoreTest, AFailedLoginReportsTheCauseWithoutThePassword) {
  auto guarded = Redis::Start({.password = "the password"});
  auto other = Redis::Start({.password = "not-the-password"});
  ASSERT_TRUE(guarded.ok() && other.ok());
  const auto denied = [&](const std::string& credentials) {
    const Status status =
        Open((*guarded)->port(), Milliseconds(30'000), credentials)->Advance(tag_, 1, 10).status();
    EXPECT_EQ(status.code(), Code::kDenied);
    EXPECT_THAT(status.message(), Not(HasSubstr("not-the-password")));
  };
  denied((*other)->credentials_file());
  denied("");
}

TEST_F(RedisStoreTest, RefusesATagBeyondTheExactNumbersOfScripts) {
  const auto store = Open(server_->port());
  tag_.start = RedisStore::kNumbersEnd;
  EXPECT_EQ(store->Check(tag_).code(), Code::kInvalid);
  tag_.start = 1;
  EXPECT_EQ(store->Check(tag_), Status());
}

}  // namespace
}  // namespace firn
