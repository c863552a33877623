#include <fstream>
#include <string>

#include <sys/stat.h>

#include "tests/server/front/redis/redis_side.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

constexpr const char* kOk = "+OK\r\n";
constexpr const char* kQueued = "+QUEUED\r\n";

class RedisTransactionTest : public RedisTest {
 protected:
  std::string Ask(const std::vector<std::string>& words) { return redis_.Ask(words); }
};

TEST_F(RedisTransactionTest, RunsTheQueuedRequestsAtExec) {
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n");
  EXPECT_EQ(Ask({"MULTI"}), kOk);
  EXPECT_EQ(Ask({"INCR", "slow"}), kQueued);
  EXPECT_EQ(Ask({"FIRN.IDS", "slow", "2"}), kQueued);
  EXPECT_EQ(Ask({"PING"}), kQueued);
  EXPECT_EQ(issuing_.slow->next, 2) << "nothing was issued before EXEC";
  EXPECT_EQ(Ask({"EXEC"}), "*3\r\n:2\r\n*2\r\n" + Bulk("3") + Bulk("4") + "+PONG\r\n");
  EXPECT_EQ(Ask({"INCR", "slow"}), ":5\r\n");
}

TEST_F(RedisTransactionTest, AnEmptyTransactionReturnsAnEmptyList) {
  EXPECT_EQ(Ask({"MULTI"}), kOk);
  EXPECT_EQ(Ask({"EXEC"}), "*0\r\n");
}

TEST_F(RedisTransactionTest, DiscardDropsTheQueue) {
  EXPECT_EQ(Ask({"MULTI"}), kOk);
  EXPECT_EQ(Ask({"INCR", "slow"}), kQueued);
  EXPECT_EQ(Ask({"DISCARD"}), kOk);
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n");
  EXPECT_EQ(Ask({"MULTI"}), kOk);
  EXPECT_EQ(Ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(Ask({"INCR", "slow"}), ":2\r\n");
}

TEST_F(RedisTransactionTest, ReportsMisuseAsRedisDoes) {
  EXPECT_EQ(Ask({"EXEC"}), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(Ask({"DISCARD"}), "-ERR DISCARD without MULTI\r\n");
  EXPECT_TRUE(Ask({"WATCH", "slow"}).starts_with("-ERR WATCH is not supported"));
  EXPECT_EQ(Ask({"UNWATCH"}), kOk);
  EXPECT_EQ(Ask({"MULTI"}), kOk);
  EXPECT_EQ(Ask({"MULTI"}), "-ERR MULTI calls can not be nested\r\n");
  EXPECT_EQ(Ask({"WATCH", "slow"}), "-ERR WATCH inside MULTI is not allowed\r\n");
  EXPECT_EQ(Ask({"EXEC"}), "*0\r\n");
}

TEST_F(RedisTransactionTest, RunsNothingIfARequestCannotBeQueued) {
  const char* const kAborted = "-EXECABORT Transaction discarded because of previous errors.\r\n";
  Ask({"MULTI"});
  EXPECT_EQ(Ask({"INCR", "slow"}), kQueued);
  EXPECT_TRUE(Ask({"SET", "a", "b"}).starts_with("-ERR unknown command 'SET'"));
  EXPECT_EQ(Ask({"EXEC"}), kAborted);
  Ask({"MULTI"});
  EXPECT_EQ(Ask({"INCR"}), "-ERR wrong number of arguments for 'incr' command\r\n");
  EXPECT_EQ(Ask({"EXEC"}), kAborted);
  EXPECT_EQ(issuing_.slow->next, 1);
}

TEST_F(RedisTransactionTest, ARefusalIsTheAnswerToItsRequestOnly) {
  Ask({"MULTI"});
  Ask({"INCR", "nothing"});
  Ask({"INCR", "slow"});
  EXPECT_EQ(Ask({"EXEC"}), "*2\r\n-ERR firn UNKNOWN_TAG: no tag 'nothing'\r\n:1\r\n");
}

TEST_F(RedisTransactionTest, QueuesAKnownIncrement) {
  Ask({"INCR", "order"});  // on the fast path now
  Ask({"MULTI"});
  EXPECT_EQ(Ask({"INCR", "order"}), kQueued);
  EXPECT_TRUE(Ask({"EXEC"}).starts_with("*1\r\n:"));
}

TEST_F(RedisTransactionTest, RemembersNoQueuedRequestForAnotherConnectionsTag) {
  Ask({"MULTI"});
  DoorCall other;
  std::swap(other, redis_.door);
  Ask({"INCR", "order"});
  std::swap(other, redis_.door);
  EXPECT_EQ(Ask({"INCR", "slow"}), kQueued);
  Ask({"DISCARD"});
  issuing_.slow->next = 777'000;
  EXPECT_EQ(Ask({"INCR", "slow"}), ":777000\r\n");
}

TEST_F(RedisTransactionTest, WaitsForIdsAndContinues) {
  Ask({"MULTI"});
  for (int i = 0; i < 3; ++i) Ask({"INCR", "slow"});
  issuing_.slow->waits = true;
  EXPECT_EQ(Ask({"EXEC"}), "*3\r\n") << "the answers so far";
  EXPECT_EQ(redis_.step.kind, Kind::kPark);
  EXPECT_EQ(Ask({"EXEC"}), "");
  issuing_.slow->waits = false;
  EXPECT_EQ(Ask({"EXEC"}), ":1\r\n:2\r\n:3\r\n");
}

TEST_F(RedisTransactionTest, ServesLongTransactionsInSeveralTurns) {
  std::string requests = Resp({"MULTI"});
  for (int i = 0; i < 1'000; ++i) requests += Resp({"INCR", "slow"});
  redis_.Raw(requests);
  OutBuffer out;
  ServeStep step = redis_.protocol().Serve(Resp({"EXEC"}), redis_.door, out);
  int turns = 1;
  for (; step.kind == Kind::kMore; ++turns) {
    EXPECT_GT(step.parked->memory(), 1'000u) << "its queue counts";
    const auto request = std::move(step.parked);
    step = request->Retry(redis_.door, out);
  }
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(turns, 4);
  EXPECT_TRUE(out.view().starts_with("*1000\r\n:1\r\n"));
  EXPECT_TRUE(out.view().ends_with(":999\r\n:1000\r\n"));
}

TEST_F(RedisTransactionTest, LimitsTheMemoryOfAQueue) {
  Ask({"MULTI"});
  const std::string text(60'000, 'x');
  for (int i = 0; i < 17; ++i) EXPECT_EQ(Ask({"ECHO", text}), kQueued) << i;
  EXPECT_GT(redis_.door.session->memory(), 1'000'000u);
  EXPECT_TRUE(Ask({"ECHO", text}).starts_with("-ERR the requests of a transaction"));
  EXPECT_TRUE(Ask({"EXEC"}).starts_with("-EXECABORT "));
}

TEST_F(RedisTransactionTest, ServesLongListsInSeveralTurns) {
  OutBuffer out;
  ServeStep step = redis_.protocol().Serve(Resp({"FIRN.IDS", "slow", "10000"}), redis_.door, out);
  int turns = 1;
  for (; step.kind == Kind::kMore; ++turns) {
    const auto request = std::move(step.parked);
    step = request->Retry(redis_.door, out);
  }
  EXPECT_EQ(step.kind, Kind::kServed);
  EXPECT_EQ(turns, 3);
  EXPECT_TRUE(out.view().starts_with("*10000\r\n" + Bulk("1") + Bulk("2")));
  EXPECT_TRUE(out.view().ends_with(Bulk("9999") + Bulk("10000")));
}

TEST_F(RedisTransactionTest, AnotherUserCannotRunIt) {
  const TempDir dir;
  const auto write = [&](const std::string& text) {
    const std::string path = dir / "logins";
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
  };
  write("alice:a\nbob:b\n");
  RedisLogins logins(dir / "logins");
  ASSERT_TRUE(logins.Load().ok());
  RedisSide side(issuing_, &logins);
  EXPECT_EQ(side.Ask({"AUTH", "alice", "a"}), kOk);
  EXPECT_EQ(side.Ask({"MULTI"}), kOk);
  EXPECT_EQ(side.Ask({"INCR", "slow"}), kQueued);
  EXPECT_TRUE(side.Ask({"AUTH", "bob", "b"}).starts_with("-ERR the user cannot change"));
  write("bob:b\n");
  ASSERT_TRUE(logins.Load().ok());
  EXPECT_EQ(side.Ask({"EXEC"}), "-NOAUTH Authentication required.\r\n");
  EXPECT_EQ(side.Ask({"AUTH", "bob", "b"}), kOk);
  EXPECT_EQ(side.Ask({"EXEC"}), "-ERR EXEC without MULTI\r\n");
  EXPECT_EQ(issuing_.slow->next, 1);
}

}  // namespace
}  // namespace firn::front
