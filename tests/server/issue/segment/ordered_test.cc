#include "server/issue/segment/ordered.h"

#include <memory>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/segment/ordered_rig.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class OrderedTest : public testing::Test, protected OrderedServers {};

TEST_F(OrderedTest, TheOwnerIssuesFromItsMemory) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  const int64_t fetched = ledger_.next;
  EXPECT_EQ(One(first_), 2);
  EXPECT_EQ(ledger_.next, fetched);
}

TEST_F(OrderedTest, NumbersRiseAcrossServers) {
  Own(first_);
  int64_t last = 0;
  for (size_t i = 0; i < 50; ++i) {
    const int64_t number = One(servers_[i % 3]);
    EXPECT_GT(number, last);
    last = number;
  }
}

TEST_F(OrderedTest, AnswersACallWithSeveralRuns) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 25});
    for (int i = 0; i < 10 && server->tag->Issue(call) != Verdict::kIssued; ++i) {
      AnswerAll();
      Pass(Milliseconds(10));
    }
    EXPECT_EQ(call.missing(), 0);
    EXPECT_EQ(call.runs().count(), 25);
  }
}

TEST_F(OrderedTest, IssuesNothingOnceTheWindowIsOver) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  clock_.Advance(kWindow);
  int64_t id = 0;
  EXPECT_FALSE(first_.tag->TryOne(Method::kEmbedded, &id));
  IdRun run;
  EXPECT_FALSE(first_.tag->TryRun(Method::kEmbedded, 2, &run));
  EXPECT_EQ(first_.tag->own()->Take(2).value(), Range{});
  EXPECT_EQ(first_.tag->status().wasted, 3) << "compared after the numbers were taken";
}

TEST_F(OrderedTest, ARangeOfAnEarlierTermIsNotUsed) {
  Own(first_);
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  const auto late = std::move(ledger_.questions.front());
  ledger_.questions.clear();
  ledger_.next = 11;  // the range 1 to 10 has been reserved, and the answer is on its way
  Leave(first_);
  Own(second_);
  const int64_t other = One(second_);
  EXPECT_GT(other, 10);
  Leave(second_);
  Own(first_);
  late.done(Range{1, 11});
  EXPECT_GT(One(first_), other);
}

TEST_F(OrderedTest, RequestsNothingFromTheLedgerBetweenTerms) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  Leave(first_);
  first_.link.owner = nullptr;
  EXPECT_EQ(Ask(first_), Verdict::kWait);
  Pass(Milliseconds(100));
  EXPECT_THAT(ledger_.questions, IsEmpty());
}

TEST_F(OrderedTest, GivesTheTailBackAtTheEndOfATerm) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  AnswerAll();
  const int64_t end = ledger_.next;
  Leave(first_);
  EXPECT_THAT(ledger_.given_back, ElementsAre(Range{2, end}));
  Own(second_);
  EXPECT_EQ(One(second_), 2);
  Leave(second_);
  Own(first_);
  EXPECT_EQ(One(first_), 3);
}

TEST_F(OrderedTest, ATakeWaitsForTheNextOwner) {
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(Milliseconds(500));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  Pass(Milliseconds(10));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
}

TEST_F(OrderedTest, ACallWithoutAnOwnerIsRefusedWithThatReason) {
  second_.link.trouble = "the cluster is frozen";
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  for (int i = 0; i < 100; ++i) {
    Pass(Milliseconds(10));
    EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  }
  EXPECT_EQ(call_.waits_at_most(), IssueCall::kSeekPatience);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  EXPECT_THAT(call_.refusal().message,
              testing::HasSubstr("no owner has given numbers of this tag yet"));
  Pass(OwnerSource::kHold);
  second_.tag->Issue(call_);
  EXPECT_THAT(call_.refusal().message, testing::HasSubstr("the cluster is frozen"));
}

TEST_F(OrderedTest, ACallWaitsForAnOwnerThatHasNotReadTheTagYet) {
  Own(first_);
  second_.link.refusal = "its owner does not serve it";
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(Milliseconds(300));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  second_.link.refusal.clear();
  Pass(OwnerSource::kPauseMax);
  AnswerAll();
  Pass(OwnerSource::kPauseMax);
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
}

TEST_F(OrderedTest, AnOwnerThatNeverServesTheTagIsTheReason) {
  Own(first_);
  second_.link.refusal = "its owner does not serve it";
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(OwnerSource::kHold);
  second_.tag->Issue(call_);
  EXPECT_THAT(call_.refusal().message, testing::HasSubstr("its owner does not serve it"));
}

TEST_F(OrderedTest, AllServersSayWhyTheStoreHasNoNumbers) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    EXPECT_EQ(Ask(*server), Verdict::kWait);
    for (int i = 0; i < 50 && call_.refusal().message.find("no row") == std::string::npos; ++i) {
      while (!ledger_.questions.empty()) ledger_.Fail(NotFound("there is no row"));
      Pass(Milliseconds(10));
      server->tag->Issue(call_);
    }
    EXPECT_THAT(call_.refusal().message, testing::HasSubstr("there is no row"));
  }
}

TEST_F(OrderedTest, ACallWaitsForTheFirstRangeOfANewOwner) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    EXPECT_EQ(Ask(*server), Verdict::kWait);
    EXPECT_EQ(call_.waits_at_most(), IssueCall::kSeekPatience);
  }
}

TEST_F(OrderedTest, ACallWaitsEquallyLongAtTheOwnerAndElsewhereForTheNextRange) {
  Own(first_);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(One(first_), i + 1);
  for (Server* server : {&first_, &second_}) {
    EXPECT_EQ(Ask(*server), Verdict::kWait);
    EXPECT_EQ(call_.waits_at_most(), IssueCall::kSeekPatience);
  }
}

TEST_F(OrderedTest, AsksTheOwnerAgainAfterMemoryRanOut) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  second_.link.out_of_memory = true;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  second_.link.out_of_memory = false;
  Pass(Milliseconds(10));
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
}

// Its window is over, but the registry still names it.
TEST_F(OrderedTest, AnOwnerWithoutNumbersIsAskedLessAndLessOften) {
  Own(first_);
  clock_.Advance(kWindow);
  second_.link.answers = 0;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  PassSlowly(OwnerSource::kHold - Milliseconds(20));
  EXPECT_GT(second_.link.answers, 20);
  EXPECT_LT(second_.link.answers, 60);
  Own(third_);
  ++second_.link.change;
  EXPECT_GT(One(second_), 0) << "the next owner is asked at once";
}

TEST_F(OrderedTest, AClosedTagEndsItsRequestAtOnce) {
  for (const bool prompt : {true, false}) {
    second_.link.prompt = prompt;
    EXPECT_EQ(Ask(second_), Verdict::kWait);
    second_.tag->Stop();
    if (!prompt) second_.link.Answer();
    EXPECT_TRUE(second_.tag->settled());
    second_.tag =
        *Ordered::Make(definition_, {ledger_, clock_, entropy_, {}}, second_.term, second_.link);
  }
}

TEST_F(OrderedTest, ACallGetsNoNumberBelowAStartThatTheOwnerHasNotReadYet) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  TagDefinition raised = definition_;
  raised.start = 1'000;
  second_.tag->Adjust(raised);
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  for (int i = 0; i < 20; ++i) {
    AnswerAll();
    Pass(Milliseconds(10));
    EXPECT_EQ(second_.tag->Issue(call_), Verdict::kWait);
  }
  first_.tag->Adjust(raised);
  ledger_.next = 1'000;
  for (int i = 0; i < 20 && second_.tag->Issue(call_) != Verdict::kIssued; ++i) {
    AnswerAll();
    Pass(Milliseconds(10));
  }
  ASSERT_EQ(call_.missing(), 0) << call_.refusal();
  EXPECT_GE(call_.runs()[0].first, 1'000);
}

TEST_F(OrderedTest, ATakeServesOnlyCallsThatHadBegun) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  second_.link.prompt = false;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  IssueCall later;
  later.Begin({.count = 1});
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  second_.link.Answer();
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  second_.link.Answer();
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kIssued);
  EXPECT_GT(later.runs()[0].first, call_.runs()[0].first);
}

TEST_F(OrderedTest, ATakeServesAllCallsThatWaitWhenItIsSent) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  second_.link.sends = second_.link.prompt = false;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  IssueCall before, later;
  before.Begin({.count = 2});
  EXPECT_EQ(second_.tag->Issue(before), Verdict::kWait);
  second_.link.Send();
  EXPECT_EQ(second_.link.takes.front().sent, 3);
  later.Begin({.count = 1});
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  const int64_t between = One(first_);
  second_.link.Answer();
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
  EXPECT_EQ(second_.tag->Issue(before), Verdict::kIssued);
  EXPECT_GT(call_.runs()[0].first, between);
  EXPECT_EQ(before.runs()[0].first, call_.runs()[0].first + 1);
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
}

TEST_F(OrderedTest, AsksTheNextOwnerIfTheFirstDoesNotAnswer) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  ScriptedLink& link = second_.link;
  link.prompt = false;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(Milliseconds(10));
  EXPECT_EQ(link.takes.size(), 1U);
  Leave(first_);
  Own(servers_[2]);
  EXPECT_GT(One(servers_[2]), 1);
  ++link.change;
  Pass(Milliseconds(10));
  ASSERT_EQ(link.takes.size(), 2U);
  std::swap(link.takes[0], link.takes[1]);
  link.Answer();
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
  link.Answer();
  EXPECT_EQ(second_.tag->status().failures, 0) << "an answer to an earlier attempt is ignored";
}

TEST_F(OrderedTest, AsksAgainIfAnAnswerIsLate) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  ScriptedLink& link = second_.link;
  link.sends = link.prompt = false;
  EXPECT_EQ(Ask(second_), Verdict::kWait);
  Pass(OwnerSource::kLate);
  ASSERT_EQ(link.takes.size(), 2U);
  std::swap(link.takes[0], link.takes[1]);
  link.Send();
  IssueCall later;
  later.Begin({.count = 1});
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  EXPECT_EQ(link.takes[1].count(), 1) << "sent now, it must not include the later call";
  const int64_t between = One(first_);
  link.Answer();
  EXPECT_EQ(second_.tag->Issue(call_), Verdict::kIssued);
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  link.Answer();
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kWait);
  link.Answer();
  EXPECT_EQ(second_.tag->Issue(later), Verdict::kIssued);
  EXPECT_GT(later.runs()[0].first, between);
}

TEST_F(OrderedTest, ACallForOneRunGetsAllOfItFromOneRange) {
  Own(first_);
  for (int i = 0; i < 7; ++i) One(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 6, .form = Form::kOneRun});
    for (int i = 0; i < 10 && server->tag->Issue(call) != Verdict::kIssued; ++i) {
      AnswerAll();
      Pass(Milliseconds(10));
    }
    ASSERT_EQ(call.missing(), 0);
    EXPECT_EQ(call.runs().size(), 1U);
  }
}

TEST_F(OrderedTest, SaysThatTheTagIsExhausted) {
  Own(first_);
  for (Server* server : {&first_, &second_}) {
    IssueCall call;
    call.Begin({.count = 1});
    Verdict verdict = server->tag->Issue(call);
    for (int i = 0; i < 5 && verdict == Verdict::kWait; ++i) {
      if (!ledger_.questions.empty()) ledger_.Fail(Exhausted("no numbers are left"));
      Pass(Milliseconds(10));
      verdict = server->tag->Issue(call);
    }
    EXPECT_EQ(call.refusal().reason, Reason::kExhausted) << call.refusal();
  }
}

TEST_F(OrderedTest, AnAbandonedTagIssuesNothingAndGivesNothingBack) {
  Own(first_);
  EXPECT_EQ(One(first_), 1);
  first_.tag->Abandon();
  int64_t id = 0;
  EXPECT_FALSE(first_.tag->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(Ask(first_), Verdict::kRefused);
  EXPECT_THAT(ledger_.given_back, IsEmpty());
}

}  // namespace
}  // namespace firn
