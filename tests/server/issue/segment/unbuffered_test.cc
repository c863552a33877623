#include "server/issue/segment/unbuffered.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/segment/segment_rig.h"

namespace firn {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class UnbufferedTest : public RangedRig<Unbuffered> {
 protected:
  UnbufferedTest() { Make({}); }
};

TEST_F(UnbufferedTest, RefusesASourceThatDoesNotPermitIt) {
  source_.permits = false;
  EXPECT_EQ(
      Unbuffered::Make({.name = "order", .strategy = "segment"}, {source_, clock_, entropy_, {}})
          .code(),
      Code::kInvalid);
}

TEST_F(UnbufferedTest, TakesTheRequestedNumbersAndKeepsNone) {
  EXPECT_EQ(Ask(3), Verdict::kWait);
  EXPECT_EQ(source_.asked(), 3);
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0], (IdRun{1, 3, 1}));
  EXPECT_THAT(source_.questions, IsEmpty());
  EXPECT_EQ(strategy_->status().supply, 0);
}

TEST_F(UnbufferedTest, ACallNeverGetsNumbersTakenBeforeItArrived) {
  EXPECT_EQ(Ask(5), Verdict::kWait);
  source_.Answer();
  EXPECT_EQ(Ask(), Verdict::kWait);
  source_.next = 100;
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 100);
}

TEST_F(UnbufferedTest, FetchesForConcurrentCallsTogether) {
  std::vector<IssueCall> crowd(4);
  for (IssueCall& call : crowd) {
    call.Begin({.count = 2});
    EXPECT_EQ(strategy_->Issue(call), Verdict::kWait);
  }
  EXPECT_EQ(source_.asked(), 2) << "the first call's fetch was for it alone";
  source_.Answer();
  ASSERT_EQ(source_.asked(), 6);
  source_.Answer();
  int64_t last = 0;
  for (IssueCall& call : crowd) {
    EXPECT_EQ(strategy_->Issue(call), Verdict::kIssued);
    EXPECT_GT(call.runs()[0].first, last);
    last = call.runs()[0].last();
  }
}

TEST_F(UnbufferedTest, ATooSmallRangeServesSomeCalls) {
  std::vector<IssueCall> crowd(3);
  for (IssueCall& call : crowd) {
    call.Begin({.count = 2});
    EXPECT_EQ(strategy_->Issue(call), Verdict::kWait);
  }
  source_.Answer();
  source_.AnswerWith(Range{10, 13});
  EXPECT_EQ(strategy_->Issue(crowd[0]), Verdict::kIssued);
  EXPECT_EQ(strategy_->Issue(crowd[1]), Verdict::kIssued);
  EXPECT_EQ(strategy_->Issue(crowd[2]), Verdict::kWait);
  EXPECT_EQ(crowd[2].missing(), 1);
  source_.next = 13;
  while (!source_.questions.empty()) source_.Answer();
  EXPECT_EQ(strategy_->Issue(crowd[2]), Verdict::kIssued);
  EXPECT_EQ(crowd[2].runs().count(), 2);
}

TEST_F(UnbufferedTest, AFailureMakesWaitingCallsRetry) {
  EXPECT_EQ(Ask(), Verdict::kWait);
  source_.Fail(Unavailable("gone"));
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
}

TEST_F(UnbufferedTest, RefusesWhileTheStoreIsUnreachableAndLeavesNoState) {
  for (int i = 0; i < 12; ++i) {
    while (source_.questions.empty()) {
      if (Ask() == Verdict::kWait) strategy_->TakeBack(call_);
      Pass(Milliseconds(10));
    }
    source_.Fail(Unavailable("gone"));
  }
  ASSERT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  for (int i = 0; i < 500; ++i) Pass(Milliseconds(10));
  EXPECT_THAT(source_.questions, IsEmpty()) << "no call waits any more";
}

TEST_F(UnbufferedTest, ACallRefusedWhileTheStoreIsSilentLeavesNoState) {
  EXPECT_EQ(Ask(), Verdict::kWait);
  Pass(FetchGate::kSlow);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), Verdict::kRefused);
  source_.Answer();
  EXPECT_THAT(source_.questions, IsEmpty());
  EXPECT_EQ(source_.next, 2);
}

TEST_F(UnbufferedTest, CallsRefusedInTheMiddleOfTheQueueLeaveNoState) {
  std::vector<IssueCall> calls(3);
  for (IssueCall& call : calls) {
    call.Begin({.count = 1});
    EXPECT_EQ(strategy_->Issue(call), Verdict::kWait);
  }
  Pass(FetchGate::kSlow);
  for (IssueCall& call : calls) EXPECT_EQ(Attempt(call), Verdict::kRefused);
  source_.Answer();
  EXPECT_THAT(source_.questions, IsEmpty());
}

TEST_F(UnbufferedTest, ACallThatTimedOutTakesNoNumber) {
  RecordingRejections rejections;
  Issuer issuer(rejections);
  ASSERT_EQ(issuer.Set({"order", strategy_, {}}), Status());
  std::vector<IssueCall> calls(4);
  for (IssueCall& call : calls) {
    call.Begin(*issuer.Resolve("order"), {.tag = "order", .count = 2});
    EXPECT_EQ(issuer.Issue(call), Verdict::kWait);
  }
  issuer.GiveUp(calls[1]);
  source_.Answer();
  EXPECT_EQ(source_.asked(), 4);
  issuer.GiveUp(calls[2]);  // the request for it has been sent
  source_.AnswerWith(Range{3, 5});
  EXPECT_EQ(issuer.Issue(calls[3]), Verdict::kIssued);
  issuer.GiveUp(calls[0]);  // its numbers have arrived
  EXPECT_EQ(strategy_->status().wasted, 2);
  EXPECT_THAT(source_.questions, IsEmpty());
}

TEST_F(UnbufferedTest, CountsUnclaimedNumbersAsWaste) {
  EXPECT_EQ(Ask(7), Verdict::kWait);
  source_.Answer();
  Pass(Unbuffered::kKeep + Milliseconds(1));
  EXPECT_EQ(strategy_->status().wasted, 7);
}

TEST_F(UnbufferedTest, DiscardsARangeBelowTheLastRange) {
  EXPECT_EQ(Ask(), Verdict::kWait);
  source_.AnswerWith(Range{10, 11});
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(Ask(), Verdict::kWait);
  source_.AnswerWith(Range{5, 6});
  EXPECT_EQ(AskAgain(), Verdict::kWait);
}

TEST_F(UnbufferedTest, GivesNothingAfterDropOrClose) {
  EXPECT_EQ(Ask(), Verdict::kWait);
  source_.Answer();
  strategy_->Drop("the ledger went back");
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  strategy_->Stop();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kDraining);
}

TEST_F(UnbufferedTest, DoesNotAnswerADroppedPartWithTheRest) {
  ASSERT_EQ(Ask(10), Verdict::kWait);
  source_.next = 5;
  source_.AnswerWith(Range{1, 5});
  ASSERT_EQ(AskAgain(), Verdict::kWait);
  ASSERT_EQ(call_.missing(), 6);
  strategy_->Drop("the ledger went back");
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
}

TEST_F(UnbufferedTest, ARaisedStartSkipsNumbersTakenBefore) {
  ASSERT_EQ(Ask(), Verdict::kWait);
  source_.Answer();
  ASSERT_EQ(Ask(), Verdict::kWait);
  definition_.start = 100;
  strategy_->Adjust(definition_);
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  source_.Answer();  // requested before
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.next = 100;
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 100);
}

TEST_F(UnbufferedTest, LimitsWaitingCalls) {
  std::vector<IssueCall> crowd(Unbuffered::kTicketsMax + 1);
  for (IssueCall& call : crowd) {
    call.Begin({.count = 1});
    strategy_->Issue(call);
  }
  EXPECT_EQ(crowd.back().refusal().reason, Reason::kOverloaded);
}

}  // namespace
}  // namespace firn
