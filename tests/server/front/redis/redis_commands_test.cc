#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/server/front/redis/redis_side.h"

namespace firn::front {
namespace {

TEST_F(RedisTest, IncrReturnsTheNextId) {
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), ":1\r\n");
  EXPECT_EQ(redis_.Ask({"incr", "slow"}), ":2\r\n");
  EXPECT_EQ(redis_.Ask({"InCr", "slow"}), ":3\r\n");
  EXPECT_EQ(redis_.step.kind, Kind::kServed);
  EXPECT_EQ(issuing_.Sums().issued["slow"], 3u);
}

TEST_F(RedisTest, AnswersRequestsInARowInOrder) {
  std::string requests;
  for (int i = 0; i < 3; ++i) requests += Resp({"INCR", "slow"});
  requests += Resp({"PING"}) + "*0\r\n" + Resp({"INCR", "slow"}) + Resp({"ECHO", "x"});
  EXPECT_EQ(redis_.Raw(requests), ":1\r\n:2\r\n:3\r\n+PONG\r\n:4\r\n$1\r\nx\r\n");
}

TEST_F(RedisTest, ServesEqualIncrementsTogether) {
  std::string requests;
  for (int i = 0; i < 100; ++i) requests += Resp({"INCR", "order"});
  OutBuffer out;
  DoorCall door{.together = 64};
  redis_.Ask({"INCR", "order"});  // remembered
  const ServeStep step = redis_.protocol().Serve(requests, door, out);
  EXPECT_EQ(step.requests, 64u);
  EXPECT_EQ(step.bytes, 64 * Resp({"INCR", "order"}).size());
  // The second half of the run differs.
  out.Clear();
  const std::string mixed = Resp({"INCR", "order"}) + Resp({"INCR", "slow"});
  EXPECT_EQ(redis_.protocol().Serve(mixed, door, out).requests, 1u);
  EXPECT_EQ(issuing_.Sums().issued["order"], 66u);
}

constexpr int64_t kExactEnd = int64_t{1} << 53;

void ExpectTooLarge(const std::string& answer) {
  EXPECT_TRUE(answer.starts_with("-ERR firn BAD_REQUEST: ")) << answer;
  EXPECT_NE(answer.find("FIRN.ID"), std::string::npos) << answer;
}

TEST_F(RedisTest, RefusesIntegersThatJavaScriptWouldRound) {
  RedisSide redis(issuing_, nullptr, nullptr, false);
  issuing_.slow->next = kExactEnd - 2;
  EXPECT_EQ(redis.Ask({"INCR", "slow"}), ":9007199254740990\r\n");
  EXPECT_EQ(redis.Ask({"INCR", "slow"}), ":9007199254740991\r\n");
  for (int i = 0; i < 3; ++i) ExpectTooLarge(redis.Ask({"INCR", "slow"}));
  ExpectTooLarge(redis.Ask({"INCRBY", "slow", "1"}));
  EXPECT_EQ(redis.Ask({"FIRN.ID", "slow"}), Bulk("9007199254740993")) << "only one was taken";
  EXPECT_EQ(issuing_.Sums().refused[static_cast<size_t>(Reason::kBadRequest)], 4u);
}

TEST_F(RedisTest, TakesNoSnowflakeIdThatIsTooLargeForAnInteger) {
  RedisSide redis(issuing_, nullptr, nullptr, false);
  const auto next = [&] {
    const std::string answer = redis.Ask({"FIRN.ID", "order"});
    return std::stoll(answer.substr(answer.find('\n') + 1));
  };
  const int64_t first = next();
  for (int i = 0; i < 3; ++i) ExpectTooLarge(redis.Ask({"INCR", "order"}));
  EXPECT_EQ(next(), first + issuing_.view.layout().stride());
}

// A plugin may change a number, so the server knows the result only after it has taken the number.
TEST_F(RedisTest, DecidesByTheIdThatIsShown) {
  class Smaller final : public Plugin {
    std::string_view name() const override { return "smaller"; }
    int order() const override { return 1; }
    std::optional<Refusal> After(const Request&, Runs& runs) override {
      for (IdRun& run : runs.runs()) run.first -= kExactEnd;
      return std::nullopt;
    }
  };
  RedisSide redis(issuing_, nullptr, nullptr, false);
  ASSERT_TRUE(issuing_.issuer.Set({"small", issuing_.slow, {std::make_shared<Smaller>()}}).ok());
  issuing_.slow->next = kExactEnd + 7;
  EXPECT_EQ(redis.Ask({"INCR", "small"}), ":7\r\n");
}

TEST_F(RedisTest, RefusesTooLargeIdsOfEqualIncrements) {
  RedisSide redis(issuing_, nullptr, nullptr, false);
  redis.Ask({"INCR", "slow"});  // remembered
  issuing_.slow->next = kExactEnd - 2;
  std::string requests;
  for (int i = 0; i < 4; ++i) requests += Resp({"INCR", "slow"});
  redis.door.together = 64;
  const std::string answers = redis.Raw(requests);
  EXPECT_TRUE(answers.starts_with(":9007199254740990\r\n:9007199254740991\r\n-ERR ")) << answers;
  EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 4) << answers;
  EXPECT_EQ(issuing_.slow->next, kExactEnd + 1) << "only the first large one was taken";
}

TEST_F(RedisTest, ReturnsLargeIntegersIfTheServerPermitsIt) {
  RedisSide redis(issuing_, nullptr, nullptr, true);
  issuing_.slow->next = kExactEnd - 1;
  for (int64_t id = kExactEnd - 1; id < kExactEnd + 3; ++id) {
    EXPECT_EQ(redis.Ask({"INCR", "slow"}), ":" + std::to_string(id) + "\r\n");
  }
}

TEST_F(RedisTest, ReturnsIdsAsTextThatEveryLanguageReads) {
  EXPECT_EQ(redis_.Ask({"FIRN.ID", "slow"}), Bulk("1"));
  EXPECT_EQ(redis_.Ask({"FIRN.IDS", "slow", "3"}), "*3\r\n" + Bulk("2") + Bulk("3") + Bulk("4"));
  EXPECT_EQ(redis_.Ask({"FIRN.TEXT", "slow"}), Bulk("slow-5"));
}

TEST_F(RedisTest, RefusesAnInvalidCount) {
  for (const std::string count : {"0", "-1", "x", "", "100001", "9223372036854775808"}) {
    EXPECT_TRUE(redis_.Ask({"FIRN.IDS", "slow", count}).starts_with("-ERR firn BAD_REQUEST: "));
  }
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), ":1\r\n") << "a refusal takes no number";
}

TEST_F(RedisTest, LimitsAnIncrementAsOtherCallsForRuns) {
  EXPECT_EQ(redis_.Ask({"INCRBY", "slow", "10000001"}),
            "-ERR firn BAD_REQUEST: the increment is 10000001; at most 10000000\r\n");
}

TEST_F(RedisTest, TheKeyIsTheTagsWholeName) {
  EXPECT_EQ(redis_.Ask({"INCR", "nothing"}), "-ERR firn UNKNOWN_TAG: no tag 'nothing'\r\n");
  EXPECT_TRUE(redis_.Ask({"INCR", ""}).starts_with("-ERR firn BAD_REQUEST: the key is empty"));
  EXPECT_EQ(redis_.Ask({"INCR", "a\r\n+OK"}), "-ERR firn UNKNOWN_TAG: no tag 'a\\x0d\\x0a+OK'\r\n");
}

TEST_F(RedisTest, RevealsNoCurrentNumber) {
  EXPECT_TRUE(redis_.Ask({"GET", "slow"}).starts_with("-ERR firn BAD_REQUEST: "));
}

TEST_F(RedisTest, ParksACallThatMustWaitAndKeepsTheOrder) {
  redis_.Ask({"INCR", "slow"});  // remembered
  issuing_.slow->waits = true;
  const std::string requests = Resp({"PING"}) + Resp({"INCR", "slow"}) + Resp({"PING"});
  EXPECT_EQ(redis_.Raw(requests), "+PONG\r\n");
  EXPECT_EQ(redis_.step.kind, Kind::kPark);
  ASSERT_NE(redis_.waiting.request, nullptr);
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), "");
  issuing_.slow->waits = false;
  EXPECT_EQ(redis_.Raw(Resp({"INCR", "slow"}) + Resp({"PING"})), ":2\r\n+PONG\r\n");
}

TEST_F(RedisTest, RefusesACallThatHasWaitedTooLongSoThatClientsRetry) {
  issuing_.slow->waits = true;
  redis_.door.last = true;
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), "-TRYAGAIN firn OVERLOADED: still waiting\r\n");
}

TEST_F(RedisTest, RefusesWhileDrainingSoThatClientsRetry) {
  redis_.Ask({"INCR", "order"});
  issuing_.issuer.Drain();
  EXPECT_EQ(redis_.Ask({"INCR", "order"}),
            "-LOADING firn DRAINING: this server is shutting down\r\n");
}

TEST_F(RedisTest, HelloReturnsSevenFieldsInTheRequestedVersion) {
  const std::string two = redis_.Ask({"HELLO"});
  EXPECT_TRUE(two.starts_with("*14\r\n" + Bulk("server") + Bulk("firn"))) << two;
  EXPECT_NE(two.find(Bulk("proto") + ":2\r\n"), std::string::npos);
  const std::string three = redis_.Ask({"hello", "3", "setname", "shop"});
  EXPECT_TRUE(three.starts_with("%7\r\n" + Bulk("server") + Bulk("firn"))) << three;
  EXPECT_NE(three.find(Bulk("proto") + ":3\r\n"), std::string::npos);
  EXPECT_TRUE(three.ends_with(Bulk("modules") + "*0\r\n"));
  EXPECT_EQ(redis_.Ask({"CLIENT", "GETNAME"}), Bulk("shop"));
}

TEST_F(RedisTest, HelloChangesNothingUnlessAllOfItIsValid) {
  EXPECT_EQ(redis_.Ask({"HELLO", "4"}), "-NOPROTO unsupported protocol version\r\n");
  EXPECT_TRUE(redis_.Ask({"HELLO", "x"}).starts_with("-ERR Protocol version is not an integer"));
  EXPECT_TRUE(redis_.Ask({"HELLO", "3", "SETNAME"}).starts_with("-ERR Syntax error in HELLO"));
  EXPECT_TRUE(redis_.Ask({"HELLO", "3", "AUTH", "u"}).starts_with("-ERR Syntax error in HELLO"));
  EXPECT_TRUE(redis_.Ask({"HELLO", "3", "SETNAME", "a b"}).starts_with("-ERR a client's name"));
  EXPECT_TRUE(redis_.Ask({"HELLO", "3", "AUTH", "u", "p"}).starts_with("-ERR this server has no"));
  EXPECT_EQ(redis_.Ask({"CLIENT", "GETNAME"}), "$-1\r\n") << "still RESP2";
}

TEST_F(RedisTest, KeepsNameAndVersionUntilReset) {
  redis_.Ask({"HELLO", "3"});
  EXPECT_EQ(redis_.Ask({"CLIENT", "GETNAME"}), "_\r\n");
  EXPECT_EQ(redis_.Ask({"CLIENT", "SETNAME", "a"}), "+OK\r\n");
  EXPECT_EQ(redis_.Ask({"CLIENT", "SETNAME", "a b"}),
            "-ERR a client's name has at most 128 printable ASCII characters without spaces\r\n");
  EXPECT_EQ(redis_.Ask({"CLIENT", "GETNAME"}), Bulk("a"));
  EXPECT_EQ(redis_.Ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(redis_.Ask({"CLIENT", "GETNAME"}), "$-1\r\n");
}

TEST_F(RedisTest, NumbersEachConnection) {
  const std::string first = redis_.Ask({"CLIENT", "ID"});
  EXPECT_EQ(redis_.Ask({"CLIENT", "ID"}), first);
  redis_.Reconnect();
  EXPECT_NE(redis_.Ask({"CLIENT", "ID"}), first);
}

TEST_F(RedisTest, AnswersTheRestOfAClientsConversation) {
  const std::pair<std::vector<std::string>, std::string> kAnswers[] = {
      {{"PING"}, "+PONG\r\n"},
      {{"ping", "hi"}, Bulk("hi")},
      {{"ECHO", "a"}, Bulk("a")},
      {{"SELECT", "0"}, "+OK\r\n"},
      {{"SELECT", "1"}, "-ERR DB index is out of range\r\n"},
      {{"SELECT", "x"}, "-ERR value is not an integer or out of range\r\n"},
      {{"CLIENT", "SETINFO", "LIB-NAME", "x"}, "+OK\r\n"},
      {{"COMMAND"}, "*0\r\n"},
      {{"COMMAND", "DOCS"}, "*0\r\n"},
      {{"COMMAND", "COUNT"}, ":0\r\n"},
      {{"CLUSTER", "SLOTS"}, "-ERR This instance has cluster support disabled\r\n"},
      {{"RESET"}, "+RESET\r\n"},
      {{"INCR"}, "-ERR wrong number of arguments for 'incr' command\r\n"},
      {{"PING", "a", "b"}, "-ERR wrong number of arguments for 'ping' command\r\n"},
      {{"SET", "a", "b"}, "-ERR unknown command 'SET', with args beginning with: 'a' 'b' \r\n"},
      {{"EVIL\r\n", "\1"}, "-ERR unknown command 'EVIL?\?', with args beginning with: '?' \r\n"},
  };
  for (const auto& [words, answer] : kAnswers) EXPECT_EQ(redis_.Ask(words), answer);
  EXPECT_TRUE(redis_.Ask({"CLIENT", "KILL"}).starts_with("-ERR unknown subcommand 'KILL'"));
  EXPECT_TRUE(redis_.Ask({"AUTH", "x"}).starts_with("-ERR this server has no users"));
  EXPECT_LT(redis_.Ask({std::string(1000, 'x'), std::string(1000, 'y')}).size(), 400u);
}

TEST_F(RedisTest, InfoDescribesAServerThatClientsMayUse) {
  const std::string info = redis_.Ask({"INFO", "server"});
  for (const std::string line :
       {"redis_version:7.2.0", "redis_mode:standalone", "role:master", "loading:0",
        "firn_state:READY", "firn_cluster:1b4e28ba-2fa1-11d2-883f-0016d3cca427"}) {
    EXPECT_NE(info.find("\r\n" + line + "\r\n"), std::string::npos) << line << "\n" << info;
  }
}

// Every client may read it without a right: it has no address or path of the registry.
TEST_F(RedisTest, InfoHasTheseFieldsOnly) {
  std::istringstream info(redis_.Ask({"INFO"}));
  std::vector<std::string> names;
  for (std::string line; std::getline(info, line);) {
    if (const size_t colon = line.find(':'); colon != line.npos) {
      names.push_back(line.substr(0, colon));
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"redis_version", "redis_mode", "loading", "role",
                                             "firn_version", "firn_state", "firn_cluster",
                                             "firn_address", "firn_calls"}));
}

TEST_F(RedisTest, QuitIsAnsweredAndEndsTheConnection) {
  EXPECT_EQ(redis_.Ask({"QUIT"}), "+OK\r\n");
  EXPECT_EQ(redis_.step.kind, Kind::kClose);
  EXPECT_EQ(redis_.step.cause, CloseCause::kPeer);
}

// A web page can make a browser send such bytes.
TEST_F(RedisTest, ClosesAConnectionAtTheFirstInlineCommand) {
  EXPECT_EQ(redis_.Raw(Resp({"PING"}) + "INCR slow\r\n" + Resp({"INCR", "slow"})),
            "+PONG\r\n-ERR Protocol error: expected '*', got 'I'\r\n");
  EXPECT_EQ(redis_.step.kind, Kind::kClose);
  EXPECT_EQ(issuing_.slow->next, 1);
}

}  // namespace
}  // namespace firn::front
