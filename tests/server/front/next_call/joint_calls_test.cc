// Equal calls of one pipeline for a number of another server wait as one call.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/front/next_call/known_users.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/segment/ordered_rig.h"

namespace firn::front {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using Numbers = std::vector<int64_t>;

// How a test requests one id by a protocol. `read` returns -1 for a refusal.
struct OneId {
  const char* name;
  std::function<std::string(const std::string& tag)> ask;
  std::function<Numbers(std::string_view answers)> read;
};

OneId OverThrift(const char* name, ThriftCoding coding) {
  const auto calls = std::make_shared<ThriftCalls>(coding);
  return {name, [calls](const std::string& tag) { return calls->GetId(tag); },
          [calls](std::string_view answers) {
            Numbers numbers;
            while (!answers.empty()) {
              const auto byte = [&](size_t i) { return size_t{static_cast<uint8_t>(answers[i])}; };
              const size_t whole = 4 + (byte(2) << 8 | byte(3));
              try {
                numbers.push_back(calls->Answer(answers.substr(0, whole)).recv_getId());
              } catch (const wire::Refusal&) {
                numbers.push_back(-1);
              }
              answers.remove_prefix(whole);
            }
            return numbers;
          }};
}

OneId OverRedis() {
  return {"Redis",
          [](const std::string& tag) {
            return Resp({"INCR", tag});
          },
          [](std::string_view answers) {
            Numbers numbers;
            for (; !answers.empty(); answers.remove_prefix(answers.find('\n') + 1)) {
              const std::string line(answers.substr(1, answers.find('\r')));
              numbers.push_back(answers[0] == ':' ? std::stoll(line) : -1);
            }
            return numbers;
          }};
}

const OneId& OneIdOf(int index) {
  static const OneId kAll[] = {OverThrift("ThriftBinary", ThriftCoding::kBinary),
                               OverThrift("ThriftCompact", ThriftCoding::kCompact), OverRedis()};
  return kAll[index];
}

// A connection to the second server, which asks the first for numbers of `rising`.
class JointCallsTest : public testing::TestWithParam<int>,
                       protected OrderedServers,
                       protected KnownUsers {
 protected:
  JointCallsTest() : KnownUsers("alice:a\n", "redis:alice *\nshop *\n") {
    if (!issuing_.issuer.Set({"rising", second_.tag, {}}).ok()) Die("no tag rising");
    Own(first_);
    One(first_);  // the owner has numbers in memory
    Open();
    Single();  // the connection's thread knows the call
    second_.link.prompt = false;
  }
  ~JointCallsTest() override { connection_.reset(); }  // it uses the other members

  const OneId& speech() const { return OneIdOf(GetParam()); }
  // How long a call waits. Clients of Thrift end an attempt earlier than a lookup would.
  Milliseconds Patience() const {
    return redis() ? IssueCall::kSeekPatience : Milliseconds(io_.limits.issue_wait_ms);
  }
  bool redis() const { return speech().name == std::string_view("Redis"); }

  void Open() {
    OneConnection::Open(io_);
    if (!redis()) return connection_->OnIdentified({"shop"});
    OneConnection::Say(Resp({"AUTH", "alice", "a"}));
    EXPECT_EQ(OneConnection::Sent(), "+OK\r\n");
  }

  std::string Ask(int count, const std::string& tag = "rising") const {
    std::string calls;
    for (int i = 0; i < count; ++i) calls += speech().ask(tag);
    return calls;
  }
  Numbers Say(const std::string& bytes) {
    wire_->Arrives(bytes);
    return Sent();
  }
  Numbers Sent() { return speech().read(OneConnection::Sent()); }
  Numbers Retry() {
    TryParkedAgain();
    return Sent();
  }
  // The number of a single call of this connection.
  int64_t Single() {
    Numbers answer = Say(Ask(1));
    for (int i = 0; i < 10 && answer.empty(); ++i) {
      if (!second_.link.takes.empty()) second_.link.Answer();
      AnswerAll();
      Pass(Milliseconds(10));
      if (parked_) answer = Retry();
    }
    EXPECT_EQ(answer.size(), 1U);
    return answer.empty() ? -1 : answer[0];
  }
  std::vector<int64_t> Takes() const {
    std::vector<int64_t> counts;
    for (const auto& take : second_.link.takes) counts.push_back(take.sent);
    return counts;
  }
  // The owner answers, and the connection is woken.
  Numbers Answer() {
    second_.link.Answer();
    return Retry();
  }
  DeskCounters::Sums Sums() const {
    DeskCounters::Sums sums;
    issuing_.counters.AddTo(sums, ProtocolKind::kThrift);
    return sums;
  }

  std::vector<std::string> log_;  // of a plugin
  IdDesk desk_{issuing_.issuer, issuing_.counters, Method::kRedis, "order", &rights_};
  IoShare io_{issuing_.limits, clock_, ThriftAndRedis(desk_)};
};

INSTANTIATE_TEST_SUITE_P(Protocols, JointCallsTest, testing::Range(0, 3),
                         [](const auto& speech) { return OneIdOf(speech.param).name; });

TEST_P(JointCallsTest, EqualCallsOfAPipelineAreOneTake) {
  const int64_t before = One(first_);
  EXPECT_THAT(Say(Ask(5)), IsEmpty());
  EXPECT_THAT(Takes(), ElementsAre(5));
  const int64_t meanwhile = One(first_);
  const Numbers numbers = Answer();
  EXPECT_EQ(meanwhile, before + 1);
  EXPECT_THAT(numbers, ElementsAre(before + 2, before + 3, before + 4, before + 5, before + 6));
  EXPECT_FALSE(parked_);
}

TEST_P(JointCallsTest, EachCallIsCounted) {
  const DeskCounters::Sums before = Sums();
  Say(Ask(5));
  Answer();
  EXPECT_EQ(Sums().calls, before.calls + 5);
  EXPECT_EQ(Sums().issued.at("rising"), before.issued.at("rising") + 5);
  EXPECT_EQ(io_.counters.requests.Get(), 6U + redis()) << "with the login";
}

TEST_P(JointCallsTest, CallsThatArriveLaterAreNotInTheTake) {
  EXPECT_EQ(OrderedServers::Ask(second_), Verdict::kWait);
  EXPECT_THAT(Say(Ask(3)), IsEmpty());
  EXPECT_THAT(Takes(), ElementsAre(1));
  second_.link.Answer();
  EXPECT_THAT(Retry(), IsEmpty());
  const int64_t between = One(first_);
  EXPECT_THAT(Takes(), ElementsAre(3));
  const Numbers numbers = Answer();
  EXPECT_EQ(numbers.size(), 3U);
  EXPECT_THAT(numbers, Each(testing::Gt(between)));
}

TEST_P(JointCallsTest, ACallOfAnotherTagInBetweenKeepsItsPlace) {
  issuing_.slow->next = 1'000'000;
  EXPECT_THAT(Say(Ask(2) + Ask(1, "slow") + Ask(3)), IsEmpty());
  EXPECT_THAT(Takes(), ElementsAre(2));
  Numbers numbers = Answer();
  ASSERT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers[2], 1'000'000);
  numbers.pop_back();
  EXPECT_THAT(Takes(), ElementsAre(3));
  for (const int64_t number : Answer()) numbers.push_back(number);
  EXPECT_EQ(numbers.size(), 5U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

TEST_P(JointCallsTest, AreAnsweredInPartsAsNumbersArrive) {
  Numbers numbers = Say(Ask(25));  // the owner has ranges of ten
  for (int i = 0; i < 50 && numbers.size() < 25; ++i) {
    if (!second_.link.takes.empty()) second_.link.Answer();
    AnswerAll();
    Pass(Milliseconds(10));
    const size_t before = numbers.size();
    for (const int64_t number : Retry()) numbers.push_back(number);
    EXPECT_LE(numbers.size(), before + 10);
  }
  ASSERT_EQ(numbers.size(), 25U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
  EXPECT_EQ(std::adjacent_find(numbers.begin(), numbers.end()), numbers.end());
  EXPECT_FALSE(parked_);
}

TEST_P(JointCallsTest, EachPartHasItsOwnTimeout) {
  EXPECT_THAT(Say(Ask(15)), IsEmpty());
  clock_.Advance(Patience() - Milliseconds(1));
  first_.term.Extend(clock_.Boot() + kWindow);
  const size_t first = Answer().size();
  EXPECT_GT(first, 0U);
  EXPECT_LT(first, 15U);
  clock_.Advance(Milliseconds(20));
  EXPECT_THAT(Retry(), IsEmpty()) << "the rest waits since the first part was answered";
  EXPECT_TRUE(parked_);
}

TEST_P(JointCallsTest, AnErrorAnswersAllThatAreLeft) {
  constexpr int kCalls = 40;  // the owner has fewer numbers
  const DeskCounters::Sums before = Sums();
  Numbers numbers = Say(Ask(kCalls) + Ask(1, "slow"));
  for (int i = 0; i < 50 && numbers.size() <= kCalls; ++i) {
    if (!second_.link.takes.empty()) second_.link.Answer();
    while (!ledger_.questions.empty()) ledger_.Fail(Exhausted("no numbers are left"));
    Pass(Milliseconds(10));
    for (const int64_t number : Retry()) numbers.push_back(number);
  }
  ASSERT_EQ(numbers.size(), kCalls + 1U);
  EXPECT_GT(numbers.back(), 0) << "the next call of the connection";
  const auto first = std::find(numbers.begin(), numbers.end(), -1);
  EXPECT_GT(first, numbers.begin());
  EXPECT_LT(first, numbers.end());
  EXPECT_TRUE(std::is_sorted(numbers.begin(), first));
  EXPECT_THAT(Numbers(first, numbers.end() - 1), Each(-1));
  EXPECT_EQ(Sums().calls, before.calls + kCalls + 1);
  EXPECT_EQ(Sums().refused[static_cast<size_t>(Reason::kExhausted)],
            static_cast<uint64_t>(numbers.end() - 1 - first));
}

TEST_P(JointCallsTest, AreRefusedTogetherAfterTheirTimeout) {
  Say(Ask(5));
  clock_.Advance(Patience());
  EXPECT_THAT(Retry(), ElementsAre(-1, -1, -1, -1, -1));
  EXPECT_EQ(issuing_.rejections.refused, 1) << "one line in the log";
  second_.link.Answer();
  first_.term.Extend(clock_.Boot() + kWindow);
  EXPECT_GT(Single(), 0);
}

TEST_P(JointCallsTest, AClosedConnectionGivesItsCallsUp) {
  Say(Ask(5));
  connection_->Close(CloseCause::kShutdown);
  if (connection_) wire_->PeerCloses();
  parked_ = false;
  EXPECT_EQ(issuing_.rejections.refused, 1);
  Open();
  EXPECT_THAT(Say(Ask(2)), IsEmpty());
  second_.link.Answer();
  EXPECT_THAT(Retry(), IsEmpty()) << "those numbers were taken before these calls";
  EXPECT_EQ(Answer().size(), 2U);
}

TEST_P(JointCallsTest, AreRefusedIfTheRightIsTakenAway) {
  Say(Ask(3));
  Write("rights", "other *\n");
  ASSERT_TRUE(rights_.Reload().ok());
  EXPECT_THAT(Answer(), ElementsAre(-1, -1, -1));
  EXPECT_EQ(Sums().refused[static_cast<size_t>(Reason::kRejected)], 3U);
}

TEST_P(JointCallsTest, AreRefusedIfTheUserIsRemoved) {
  if (!redis()) return;  // connections of this protocol have no user
  Say(Ask(3) + Resp({"AUTH", "alice", "a"}));
  Write("logins", "bob:b\n");
  ASSERT_TRUE(logins_.Load().ok());
  EXPECT_THAT(Answer(), ElementsAre(-1, -1, -1, -1)) << "with the login behind them";
}

TEST_P(JointCallsTest, ALoginInBetweenKeepsItsPlace) {
  if (!redis()) return;  // connections of this protocol have no user
  Say(Ask(3) + Resp({"AUTH", "alice", "wrong"}) + Ask(2));
  const Numbers numbers = Answer();
  ASSERT_EQ(numbers.size(), 4U);
  EXPECT_EQ(numbers[3], -1);
  EXPECT_EQ(Answer().size(), 2U);
}

TEST_P(JointCallsTest, CallsOfATagWithAPluginWaitAlone) {
  const auto plugin = std::make_shared<ScriptedPlugin>("p", 1, &log_);
  ASSERT_TRUE(issuing_.issuer.Set({"rising", second_.tag, {plugin}}).ok());
  Say(Ask(3));
  EXPECT_THAT(Takes(), ElementsAre(1));
}

TEST_P(JointCallsTest, TheRestIsRefusedIfTheTagGetsAPlugin) {
  const auto plugin = std::make_shared<ScriptedPlugin>("p", 1, &log_);
  Say(Ask(15));
  ASSERT_TRUE(issuing_.issuer.Set({"rising", second_.tag, {plugin}}).ok());
  const Numbers numbers = Answer();
  ASSERT_EQ(numbers.size(), 15U);
  EXPECT_GT(numbers[0], 0) << "it ends as it began";
  EXPECT_EQ(numbers[14], -1);
  EXPECT_THAT(log_, IsEmpty());
}

TEST_P(JointCallsTest, TheOwnersCallsWaitForTheLedgerAsOne) {
  ASSERT_TRUE(issuing_.issuer.Set({"rising", first_.tag, {}}).ok());
  Numbers numbers;
  for (int i = 0; i < 20 && numbers.size() < 30; ++i) {
    for (const int64_t number : i == 0 ? Say(Ask(30)) : parked_ ? Retry() : Sent()) {
      numbers.push_back(number);
    }
    AnswerAll();
    Pass(Milliseconds(10));
  }
  ASSERT_EQ(numbers.size(), 30U);
  EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end()));
}

}  // namespace
}  // namespace firn::front
