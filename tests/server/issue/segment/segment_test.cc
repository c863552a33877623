#include "server/issue/segment/segment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/issue/segment/segment_rig.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TagDefinition Steps(int64_t step, int64_t step_max, int64_t prefetch_at = 10,
                    int64_t hold_minutes = 15) {
  TagDefinition tag;
  tag.step = step;
  tag.step_max = step_max;
  tag.prefetch_at = prefetch_at;
  tag.hold_minutes = hold_minutes;
  return tag;
}

class SegmentTest : public RangedRig<Segment> {
 protected:
  // Steps of 100; the first range is loaded, and no other is requested.
  void Fill(TagDefinition tag = Steps(100, 100)) {
    Make(std::move(tag));
    ASSERT_EQ(Ask(), Verdict::kWait);
    source_.Answer();
    ASSERT_EQ(AskAgain(), Verdict::kIssued);
  }
};

TEST_F(SegmentTest, FetchesNothingBeforeTheFirstCall) {
  Make({});
  Pass(Milliseconds(60'000));
  EXPECT_THAT(source_.questions, IsEmpty());
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
}

TEST_F(SegmentTest, TheFirstCallWaitsForTheFirstRange) {
  Make({});
  EXPECT_EQ(Ask(), Verdict::kWait);
  EXPECT_GT(call_.ask_again_in().count(), 0);
  ASSERT_THAT(source_.questions, SizeIs(1));
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  source_.Answer();
  EXPECT_EQ(news_, 1);
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0], (IdRun{1, 1, 1}));
}

TEST_F(SegmentTest, NumbersAreConsecutiveAcrossRanges) {
  Fill();
  for (int64_t i = 2; i <= 1'000; ++i) {
    ASSERT_EQ(One(), i);
    if (!source_.questions.empty()) source_.Answer();
  }
}

TEST_F(SegmentTest, FetchesTheNextRangeAtThePrefetchMark) {
  Fill(Steps(100, 100, 30));
  Use(29);
  EXPECT_THAT(source_.questions, IsEmpty());
  Use(1);
  EXPECT_THAT(source_.questions, SizeIs(1));
}

TEST_F(SegmentTest, ABatchThatPassesTheMarkFetchesTheNextRange) {
  Fill();
  EXPECT_EQ(Ask(50), Verdict::kIssued);
  EXPECT_THAT(source_.questions, SizeIs(1));
}

TEST_F(SegmentTest, FetchesOneRangeAtATime) {
  Fill();
  Use(99);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), Verdict::kWait);
  Pass(Milliseconds(1'000));
  EXPECT_THAT(source_.questions, SizeIs(1));
}

TEST_F(SegmentTest, ABatchSpansTwoRanges) {
  Fill();
  Use(49);
  source_.Answer();
  EXPECT_EQ(Ask(100), Verdict::kIssued);
  EXPECT_EQ(call_.runs().size(), 1u);
  EXPECT_EQ(call_.runs()[0], (IdRun{51, 100, 1}));
}

TEST_F(SegmentTest, ABatchKeepsItsNumbersWhileItWaits) {
  Fill();
  EXPECT_EQ(Ask(150), Verdict::kWait);
  EXPECT_EQ(call_.missing(), 51);
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs().count(), 150);
}

TEST_F(SegmentTest, FetchesMoreThanAStepIfCallersWaitForMore) {
  Make(Steps(10, 1'000));
  EXPECT_EQ(Ask(5), Verdict::kWait);
  ASSERT_EQ(source_.asked(), 10);
  std::vector<IssueCall> crowd(50);
  for (IssueCall& call : crowd) {
    call.Begin({.count = 3});
    EXPECT_EQ(strategy_->Issue(call), Verdict::kWait);
    EXPECT_EQ(strategy_->Issue(call), Verdict::kWait) << "a call is counted only once";
  }
  source_.Answer();
  ASSERT_EQ(AskAgain(), Verdict::kIssued);
  for (IssueCall& call : crowd) {
    if (strategy_->Issue(call) == Verdict::kWait) break;
  }
  ASSERT_THAT(source_.questions, SizeIs(1));
  EXPECT_EQ(source_.asked(), 150);
  source_.Answer();
  for (IssueCall& call : crowd) {
    if (call.missing() == 0) continue;
    EXPECT_EQ(strategy_->Issue(call), Verdict::kIssued);
  }
}

TEST_F(SegmentTest, NeverFetchesMoreThanTheLargestStep) {
  Make(Steps(10, 1'000));
  EXPECT_EQ(Ask(5'000'000), Verdict::kWait);
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  EXPECT_LE(source_.asked(), 1'000);
}

TEST_F(SegmentTest, RangesThatAreUsedUpQuicklyGrow) {
  Make(Steps(10, 100, 10, 15));
  std::vector<int64_t> sizes;
  while (sizes.size() < 6) {
    while (Ask() == Verdict::kIssued && source_.questions.empty()) {
    }
    sizes.push_back(source_.asked());
    source_.Answer();
  }
  EXPECT_THAT(sizes, ElementsAre(10, 10, 20, 40, 80, 100));
}

TEST_F(SegmentTest, RangesThatLastTooLongShrink) {
  Make(Steps(10, 1'000, 10, 1));
  for (int i = 0; i < 10; ++i) {
    while (Ask() == Verdict::kIssued && source_.questions.empty()) {
    }
    source_.Answer();
  }
  ASSERT_EQ(strategy_->status().step, 1'000);
  int64_t before = 1'000;
  for (int i = 0; i < 10; ++i) {
    clock_.Advance(std::chrono::minutes(3));
    const int64_t ranges = strategy_->status().ranges;
    while (strategy_->status().ranges < ranges + 1) {
      Ask();
      if (!source_.questions.empty()) source_.Answer();
    }
    EXPECT_LE(strategy_->status().step, before);
    before = strategy_->status().step;
  }
  EXPECT_EQ(before, 10) << "the step must not fall below the tag's own";
}

TEST_F(SegmentTest, IssuesFromMemoryWhileTheStoreIsUnreachable) {
  Fill();
  Use(10);
  source_.Fail(Unavailable("gone"));
  Use(89);
  EXPECT_EQ(Ask(), Verdict::kWait) << "the next attempt is due soon";
}

TEST_F(SegmentTest, RefusesWhenBothRangesAreEmptyAndTheStoreIsUnreachable) {
  Fill();
  Use(99);
  for (int i = 0; i < 12; ++i) {
    source_.Fail(Unavailable("gone"));
    if (i < 11) {
      while (source_.questions.empty()) Pass(Milliseconds(10));
    }
  }
  ASSERT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  EXPECT_GT(call_.refusal().retry_after_ms, 0);
  EXPECT_TRUE(call_.refusal().another_server_may_help);
  EXPECT_TRUE(call_.runs().empty());
}

// The store answers: other servers were faster.
TEST_F(SegmentTest, RefusesAsOverloadedWhileOtherServersTakeAllRanges) {
  Fill();
  Use(99);
  for (int i = 0; i < 12; ++i) {
    source_.Fail(Conflict("other servers took all"));
    if (i < 11) {
      while (source_.questions.empty()) Pass(Milliseconds(10));
    }
  }
  ASSERT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded);
  EXPECT_GT(call_.refusal().retry_after_ms, 0);
}

TEST_F(SegmentTest, ASilentStoreCountsAsUnreachableAfterATimeout) {
  Fill();
  Use(99);
  EXPECT_EQ(Ask(), Verdict::kWait);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded) << "if the call times out now";
  Pass(FetchGate::kSlow);
  EXPECT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
}

TEST_F(SegmentTest, RetriesAndServesOnceTheStoreIsBack) {
  Fill();
  Use(99);
  source_.Fail(Unknown("no answer"));
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.next += 100;  // the lost range
  source_.Answer();
  EXPECT_EQ(One(), 201);
  EXPECT_EQ(strategy_->status().failures, 1);
}

TEST_F(SegmentTest, RefusesAsExhaustedAtTheEndOfAllNumbers) {
  Fill();
  Use(99);
  source_.Fail(Exhausted("no more"));
  ASSERT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kExhausted);
  EXPECT_TRUE(call_.refusal().another_server_may_help) << "it may still have numbers in memory";
}

TEST_F(SegmentTest, ServesTheLastNumbersOf63Bits) {
  source_.next = kRangeEnd - 3;
  Make(Steps(10, 10));
  ASSERT_EQ(Ask(), Verdict::kWait);
  source_.AnswerWith(Range{kRangeEnd - 3, kRangeEnd});
  EXPECT_EQ(One(), kRangeEnd - 3);
  EXPECT_EQ(One(), kRangeEnd - 2);
  EXPECT_EQ(One(), kRangeEnd - 1);
}

TEST_F(SegmentTest, DiscardsARangeBelowTheLastOne) {
  Fill();
  Use(99);
  source_.AnswerWith(Range{50, 150});
  EXPECT_EQ(Ask(), Verdict::kWait);
  EXPECT_EQ(strategy_->status().failures, 1);
  EXPECT_EQ(strategy_->status().supply, 0);
}

TEST_F(SegmentTest, DiscardsAnEmptyRange) {
  Fill();
  Use(99);
  source_.AnswerWith(Range{200, 200});
  EXPECT_EQ(strategy_->status().failures, 1);
}

TEST_F(SegmentTest, GivesNothingOnceClosed) {
  Fill();
  strategy_->Close();
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kDraining);
  strategy_->Close();
}

TEST_F(SegmentTest, StopGivesBackTheRestOfTheCurrentRangeAndTheNext) {
  Fill();
  Use(29);
  source_.Answer();
  strategy_->Stop();
  EXPECT_THAT(source_.given_back, ElementsAre(Range{31, 201}));
  EXPECT_EQ(strategy_->status().wasted, 0);
  EXPECT_TRUE(strategy_->settled());
}

TEST_F(SegmentTest, GivesBackOnlyTheNextRangeIfAnotherServerTookNumbersBetween) {
  Fill();
  Use(29);
  source_.next = 301;
  source_.Answer();
  strategy_->Stop();
  EXPECT_THAT(source_.given_back, ElementsAre(Range{301, 401}));
  EXPECT_EQ(strategy_->status().wasted, 70);
}

TEST_F(SegmentTest, CountsATailThatCannotBeGivenBackAsWaste) {
  Fill();
  source_.next = 500;
  strategy_->Stop();
  EXPECT_THAT(source_.given_back, ElementsAre(Range{2, 101}));
  EXPECT_EQ(strategy_->status().wasted, 99);
}

TEST_F(SegmentTest, GivesNoTailBackTwice) {
  Fill();
  strategy_->Stop();
  strategy_->Stop();
  EXPECT_THAT(source_.given_back, SizeIs(1));
}

TEST_F(SegmentTest, GivesBackARangeThatArrivesAfterStop) {
  Fill();
  Use(29);
  strategy_->Stop();
  EXPECT_FALSE(strategy_->settled());
  EXPECT_THAT(source_.given_back, IsEmpty()) << "it would no longer be the last range";
  source_.Answer();
  EXPECT_THAT(source_.given_back, ElementsAre(Range{31, 201}));
  EXPECT_TRUE(strategy_->settled());
}

TEST_F(SegmentTest, GivesNothingAfterDropUntilTheNextRange) {
  Fill();
  Use(29);
  source_.Answer();
  strategy_->Drop("the ledger went back");
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(strategy_->status().wasted, 170);
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.Answer();
  EXPECT_EQ(One(), 201);
}

TEST_F(SegmentTest, DiscardsARangeRequestedBeforeADrop) {
  Fill();
  Use(29);
  strategy_->Drop("the ledger went back");
  source_.Answer();
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(strategy_->status().supply, 0);
}

// Another server may have taken them from the data that the registry has now.
TEST_F(SegmentTest, DoesNotGiveBackNumbersDroppedDuringAStop) {
  Fill();
  Use(29);
  strategy_->Stop();
  strategy_->Drop("the ledger went back");
  source_.Answer();
  EXPECT_THAT(source_.given_back, IsEmpty());
  EXPECT_TRUE(strategy_->settled());
}

TEST_F(SegmentTest, AChangedDefinitionKeepsTheNumbersInMemory) {
  Fill();
  TagDefinition changed = definition_;
  changed.step = 500;
  changed.step_max = 500;
  strategy_->Adjust(changed);
  EXPECT_EQ(One(), 2);
  Use(30);
  EXPECT_EQ(source_.asked(), 500);
}

TEST_F(SegmentTest, ReportsHowLongItsSupplyLasts) {
  Fill(Steps(10'000, 10'000));
  EXPECT_FALSE(strategy_->status().supply_seconds);
  for (int i = 0; i < 60; ++i) {
    Use(10);
    Pass(Milliseconds(1'000));
  }
  const SegmentStatus status = strategy_->status();
  EXPECT_NEAR(status.per_second, 10, 0.5);
  EXPECT_NEAR(static_cast<double>(*status.supply_seconds), 940, 60);
}

TEST_F(SegmentTest, AnUnusedSupplyReportsNoShorterTime) {
  Fill(Steps(10'000, 10'000));
  Pass(Milliseconds(1'000));
  Use(10);
  int64_t lasts = 0;
  for (int i = 0; i < 10'000; ++i) {
    Pass(Milliseconds(1'000));
    const SegmentStatus status = strategy_->status();
    if (!status.supply_seconds) continue;
    EXPECT_GE(*status.supply_seconds, lasts) << "less use must not shorten the estimate";
    lasts = *status.supply_seconds;
  }
  EXPECT_GT(lasts, 0);
  EXPECT_FALSE(strategy_->status().supply_seconds);
}

}  // namespace
}  // namespace firn
