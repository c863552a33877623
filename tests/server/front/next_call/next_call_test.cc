// After every possible end of a request, the next one on its connection gets its own answer. This
// holds for each protocol; the next request has another tag, another count and, if the protocol has
// users, another user.

#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "server/front/http/http_handlers.h"
#include "tests/server/front/leases/scripted_leases.h"
#include "tests/server/front/next_call/known_users.h"
#include "tests/server/front/next_call/speeches.h"

namespace firn::front {
namespace {

// A plugin that throws while `throws` is set. It gets long lists in parts.
class Thrower final : public Plugin {
 public:
  std::string_view name() const override { return "thrower"; }
  int order() const override { return 1; }
  Effect effect() const override { return Effect::kEach; }
  std::optional<Refusal> After(const Request&, Runs&) override {
    if (throws) throw std::runtime_error("as told");
    return std::nullopt;
  }
  bool throws = false;
};

// A seeker for unknown tags that answers while `answers` is set, or throws while `throws` is set.
class SlowSeeker final : public TagSeeker {
 public:
  Found Seek(std::string_view, uint64_t&, bool) override {
    if (throws) throw std::runtime_error("as told");
    return answers ? Found::kNothing : Found::kLooking;
  }
  bool answers = false, throws = false;
};

class NextCallTest : public testing::TestWithParam<int>, protected KnownUsers {
 protected:
  static constexpr int64_t kOthers = 1'000'000;
  static constexpr int kLong = 10'000;

  NextCallTest()
      : KnownUsers("alice:a\nbob:b\n",
                   "redis:alice slow,gone\nredis:bob other\nboth slow,gone,other,@lease\n") {
    other_->next = kOthers;
    if (!issuing_.issuer.Set({"slow", issuing_.slow, {thrower_}}).ok()) Die("no tag slow");
    if (!issuing_.issuer.Set({"other", other_, {}}).ok()) Die("no tag other");
    issuing_.issuer.SetSeeker(seeker_);
    Open();
  }
  ~NextCallTest() override { connection_.reset(); }  // it uses the other members

  void Rights(const std::string& text) {
    Write("rights", text);
    ASSERT_TRUE(rights_.Reload().ok());
  }

  const Speech& speech() const { return SpeechOf(GetParam()); }
  bool redis() const { return speech().name == std::string_view("Redis"); }

  ProtocolSet MakeProtocols() {
    ProtocolSet set = ThriftAndRedis(desk_);
    std::vector<std::unique_ptr<HttpHandler>> handlers;
    handlers.push_back(MakeNativeHandler(backend_, desk_));
    handlers.push_back(MakeTinyidHandler(backend_, desk_, {}));
    handlers.push_back(MakeLeaseHandler(backend_, leases_));
    set.http = MakeHttpProtocol(&desk_, std::move(handlers));
    set.dubbo = MakeDubboProtocol(backend_, desk_, dubbo_, dubbo_counters_);
    return set;
  }

  void Open() {
    OneConnection::Open(io_);
    if (!redis()) connection_->OnIdentified({"both"});
    LogIn("alice", "a");
  }
  void LogIn(const std::string& user, const std::string& password) {
    if (redis()) {
      ASSERT_EQ(Say(Resp({"AUTH", user, password})), "+OK\r\n");
    }
  }

  std::string Say(const std::string& bytes) {
    wire_->Arrives(bytes);
    return Sent();
  }
  std::string Retry() {
    TryParkedAgain();
    return Sent();
  }

  void Close() {
    connection_->Close(CloseCause::kShutdown);
    if (connection_) wire_->PeerCloses();
    parked_ = to_resume_ = false;
  }

  // Requests ids that take several turns, and serves the first one.
  void Begin() {
    wire_->Arrives(speech().ask("slow", kLong));
    EXPECT_TRUE(to_resume_);
    EXPECT_EQ(issuing_.slow->next, kLong + 1) << "it has its ids";
  }
  using OneConnection::Park;
  // Requests 10 ids of a tag; the request is parked.
  void Park(const std::string& tag = "slow") {
    issuing_.slow->waits = true;
    EXPECT_EQ(Say(speech().ask(tag, 10)), "");
    EXPECT_TRUE(parked_);
  }
  void ExpectRefused(const std::string& answer) {
    EXPECT_NE(answer, "");
    EXPECT_EQ(speech().read(answer), Numbers{}) << answer;
  }
  // Makes the next request, as the other user, and expects exactly its own numbers.
  void ExpectOwnAnswer() {
    issuing_.slow->waits = false;
    LogIn("bob", "b");
    const int64_t from = other_->next;
    EXPECT_GE(from, kOthers);
    const Numbers numbers = speech().read(Say(speech().ask("other", 100)));
    ASSERT_EQ(numbers.size(), 100u);
    for (size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(numbers[i], from + static_cast<int64_t>(i));
    }
    EXPECT_EQ(other_->next, from + 100) << "numbers that were not reserved";
    EXPECT_FALSE(parked_);
  }

  std::shared_ptr<ScriptedStrategy> other_ = std::make_shared<ScriptedStrategy>();
  std::shared_ptr<Thrower> thrower_ = std::make_shared<Thrower>();
  SlowSeeker seeker_;
  ScriptedLeases leases_;
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kHttp, "order", &rights_};
  DubboState dubbo_;
  DubboCounters dubbo_counters_;
  IoShare io_{issuing_.limits, issuing_.clock, MakeProtocols()};
};

INSTANTIATE_TEST_SUITE_P(Protocols, NextCallTest, testing::Range(0, 6),
                         [](const auto& speech) { return SpeechOf(speech.param).name; });

TEST_P(NextCallTest, AfterAnAnswerAtOnce) {
  EXPECT_EQ(speech().read(Say(speech().ask("slow", 10))).size(), 10u);
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterAnAnswerThatWaited) {
  Park();
  EXPECT_EQ(Retry(), "") << "parked again";
  issuing_.slow->waits = false;
  EXPECT_EQ(speech().read(Retry()).size(), 10u);
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterARefusal) {
  ExpectRefused(Say(speech().ask("slow", 0)));
  seeker_.answers = true;
  ExpectRefused(Say(speech().ask("gone", 10)));
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterATimeout) {
  Park();
  issuing_.clock.Advance(Milliseconds(issuing_.limits.issue_wait_ms));
  ExpectRefused(Retry());
  ExpectOwnAnswer();
}

// Clients of Thrift end an attempt sooner than such a lookup ends.
TEST_P(NextCallTest, AfterALookupThatTookLongerThanATick) {
  Park("gone");
  issuing_.clock.Advance(Milliseconds(issuing_.limits.issue_wait_ms));
  if (std::string_view(speech().name).starts_with("Thrift")) return ExpectRefused(Retry());
  EXPECT_EQ(Retry(), "") << "parked again";
  issuing_.clock.Advance(IssueCall::kSeekPatience);
  ExpectRefused(Retry());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheRightWasTakenAway) {
  Park();
  Rights("redis:bob other\nboth other\n");
  ExpectRefused(Retry());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheUserWasRemoved) {
  if (!redis()) return;  // connections of this protocol have no user
  Park();
  Write("logins", "bob:b\n");
  ASSERT_TRUE(logins_.Load().ok());
  EXPECT_EQ(Retry(), "-NOAUTH Authentication required.\r\n");
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterAPluginThrew) {
  Park();
  thrower_->throws = true;
  issuing_.slow->waits = false;
  ExpectRefused(Retry());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheSeekerThrew) {
  Park("gone");
  seeker_.throws = true;
  const std::string answer = Retry();
  if (!connection_) Open();  // its protocol closes the connection
  if (wire_->finished) Open();
  EXPECT_EQ(answer.find("100000"), std::string::npos);
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheTagWasRemoved) {
  Park("gone");
  seeker_.answers = true;
  ExpectRefused(Retry());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheTagWasRedefined) {
  Park();
  issuing_.issuer.Remove("slow");
  issuing_.slow->waits = false;
  EXPECT_EQ(speech().read(Retry()).size(), 10u) << "it ends as it began";
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterAnAnswerOfSeveralTurns) {
  Begin();
  issuing_.slow->waits = true;  // must not matter: nothing is waited for
  issuing_.clock.Advance(Milliseconds(issuing_.limits.issue_wait_ms));
  EXPECT_EQ(speech().read(Sent()).size(), size_t{kLong});
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterAWaitAndAnAnswerOfSeveralTurns) {
  issuing_.slow->waits = true;
  EXPECT_EQ(Say(speech().ask("slow", kLong)), "");
  issuing_.slow->waits = false;
  issuing_.clock.Advance(Milliseconds(issuing_.limits.issue_wait_ms));
  EXPECT_EQ(speech().read(Retry()).size(), size_t{kLong}) << "the last attempt is in time";
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterAPluginThrewInALaterTurn) {
  Begin();
  thrower_->throws = true;
  ExpectRefused(Sent());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheRightWasTakenAwayBetweenTurns) {
  Begin();
  Rights("redis:bob other\nboth other\n");
  ExpectRefused(Sent());
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheConnectionWasClosedBetweenTurns) {
  Begin();
  Close();
  EXPECT_EQ(issuing_.rejections.refused, 1) << "the call is given up";
  Open();
  ExpectOwnAnswer();
}

// Leases by HTTP; thrift_leases_test.cc has those by Thrift.
class NextCallAfterALeaseTest : public NextCallTest {
 protected:
  void ParkALease() {
    const std::string form =
        "token=00112233445566778899aabbccddeeff&name=shop&clock_ms=1735689600000";
    EXPECT_EQ(Say("POST /v1/leases HTTP/1.1\r\nHost: x\r\nContent-Type: "
                  "application/x-www-form-urlencoded\r\nContent-Length: " +
                  std::to_string(form.size()) + "\r\n\r\n" + form),
              "");
    EXPECT_TRUE(parked_);
  }
};

INSTANTIATE_TEST_SUITE_P(Protocols, NextCallAfterALeaseTest, testing::Values(2));

TEST_P(NextCallAfterALeaseTest, AfterAnAnswerThatWaited) {
  ParkALease();
  leases_.Give(kGrantedLease);
  EXPECT_THAT(Retry(), testing::StartsWith("HTTP/1.1 201"));
  ExpectOwnAnswer();
}

TEST_P(NextCallAfterALeaseTest, AfterATimeout) {
  ParkALease();
  issuing_.clock.Advance(Milliseconds(5'000));
  EXPECT_THAT(Retry(), testing::StartsWith("HTTP/1.1 503"));
  leases_.Give(kGrantedLease);
  ExpectOwnAnswer();
}

TEST_P(NextCallAfterALeaseTest, AfterTheConnectionWasClosed) {
  ParkALease();
  Close();
  Open();
  leases_.Give(kGrantedLease);
  ExpectOwnAnswer();
}

// Transactions of Redis.
class NextCallAfterExecTest : public NextCallTest {
 protected:
  // EXEC runs a request that takes several turns, and then one that waits.
  void Exec() {
    EXPECT_EQ(Say(Resp({"MULTI"})), "+OK\r\n");
    EXPECT_EQ(Say(speech().ask("slow", kLong)), "+QUEUED\r\n");
    EXPECT_EQ(Say(Resp({"INCR", "gone"})), "+QUEUED\r\n");
    EXPECT_TRUE(Say(Resp({"EXEC"})).starts_with("*2\r\n*10000\r\n$1\r\n1\r\n"));
    EXPECT_TRUE(parked_);
  }
};

INSTANTIATE_TEST_SUITE_P(Protocols, NextCallAfterExecTest, testing::Values(3));

TEST_P(NextCallAfterExecTest, AfterItsEnd) {
  Exec();
  seeker_.answers = true;
  EXPECT_EQ(Retry(), "-ERR firn UNKNOWN_TAG: no tag 'gone'\r\n");
  ExpectOwnAnswer();
}

TEST_P(NextCallAfterExecTest, AfterATimeout) {
  Exec();
  issuing_.clock.Advance(IssueCall::kSeekPatience);
  EXPECT_TRUE(Retry().starts_with("-TRYAGAIN firn OVERLOADED"));
  ExpectOwnAnswer();
}

TEST_P(NextCallAfterExecTest, AfterTheUserWasRemoved) {
  Exec();
  Write("logins", "bob:b\n");
  ASSERT_TRUE(logins_.Load().ok());
  EXPECT_EQ(Retry(), "-NOAUTH Authentication required.\r\n");
  ExpectOwnAnswer();
}

TEST_P(NextCallAfterExecTest, AfterTheConnectionWasClosed) {
  Exec();
  Close();
  Open();
  ExpectOwnAnswer();
}

// As in a pipeline.
TEST_P(NextCallAfterExecTest, EachOfItsRequestsHasItsOwnTimeout) {
  const Milliseconds wait(issuing_.limits.issue_wait_ms);
  EXPECT_EQ(Say(Resp({"MULTI"})), "+OK\r\n");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Say(Resp({"INCR", "slow"})), "+QUEUED\r\n");
  issuing_.slow->waits = true;
  EXPECT_EQ(Say(Resp({"EXEC"})), "*3\r\n");
  issuing_.clock.Advance(wait);
  EXPECT_EQ(Retry(), "-TRYAGAIN firn OVERLOADED: still waiting\r\n");
  issuing_.clock.Advance(wait - Milliseconds(1));
  EXPECT_EQ(Retry(), "") << "the second one waits since the end of the first one";
  issuing_.slow->waits = false;
  EXPECT_EQ(Retry(), ":1\r\n:2\r\n");
  ExpectOwnAnswer();
}

TEST_P(NextCallTest, AfterTheConnectionWasClosed) {
  Park();
  Close();
  EXPECT_EQ(issuing_.rejections.refused, 1) << "the call is given up";
  Open();
  ExpectOwnAnswer();
}

}  // namespace
}  // namespace firn::front
