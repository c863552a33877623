#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "server/issue/segment/segment.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/segment/segment_rig.h"

namespace firn {
namespace {

// How a segment treats numbers that it must not issue any more, and calls that it refuses.
class SegmentDropTest : public RangedRig<Segment> {
 protected:
  // Steps of 100; the first range is loaded, and no other is requested.
  void Fill(int64_t step_max = 100) {
    TagDefinition tag;
    tag.step = 100;
    tag.step_max = step_max;
    Make(std::move(tag));
    ASSERT_EQ(Ask(), Verdict::kWait);
    source_.Answer();
    ASSERT_EQ(AskAgain(), Verdict::kIssued);
  }
};

TEST_F(SegmentDropTest, RefusesAWaitingBatchWhoseNumbersAreDropped) {
  Fill();
  ASSERT_EQ(Ask(150), Verdict::kWait);
  strategy_->Drop("the ledger went back");
  source_.Answer();
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.Answer();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kStoreDown);
  EXPECT_EQ(strategy_->status().wasted, 99 + 100);
  EXPECT_EQ(Ask(50), Verdict::kIssued) << "the next call must be served";
}

TEST_F(SegmentDropTest, CountsTheNumbersOfACallThatTimesOutAsWasted) {
  Fill();
  RecordingRejections rejections;
  Issuer issuer(rejections);
  ASSERT_EQ(issuer.Set({"order", strategy_, {}}), Status());
  call_.Begin(*issuer.Resolve("order"), {.tag = "order", .count = 150});
  ASSERT_EQ(issuer.Issue(call_), Verdict::kWait);
  EXPECT_EQ(strategy_->status().wasted, 0);
  issuer.GiveUp(call_);
  EXPECT_EQ(strategy_->status().wasted, 99);
}

// After Close it keeps the rest, to give it back on Stop. Numbers dropped in between may belong to
// another server by then: a ledger that ends where they end proves nothing.
TEST_F(SegmentDropTest, DoesNotGiveBackNumbersDroppedAfterClose) {
  Fill();
  strategy_->Close();
  strategy_->Drop("the ledger went back");
  strategy_->Stop();
  EXPECT_TRUE(source_.given_back.empty());
  EXPECT_EQ(strategy_->status().wasted, 99);
  EXPECT_EQ(strategy_->status().supply, 0);
}

TEST_F(SegmentDropTest, ARaisedStartSkipsNumbersBelowIt) {
  const auto raise = [this](int64_t start) {
    definition_.start = start;
    strategy_->Adjust(definition_);
  };
  Fill();
  Use(29);
  source_.Answer();  // [31, 101) and [101, 201)
  raise(50);
  EXPECT_EQ(One(), 50);
  EXPECT_EQ(strategy_->status().wasted, 19);
  raise(150);
  EXPECT_EQ(One(), 150);
  EXPECT_EQ(strategy_->status().supply, 50);
  ASSERT_EQ(Ask(100), Verdict::kWait);  // it has 50 of them
  raise(1'000);
  source_.Answer();  // requested before
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  while (source_.questions.empty()) Pass(Milliseconds(10));
  source_.next = 1'000;
  source_.Answer();
  EXPECT_EQ(One(), 1'000);
}

TEST_F(SegmentDropTest, RefusedCallsDoNotEnlargeTheNextFetch) {
  Fill(100'000'000);
  Use(99);
  for (int i = 0; i < 12; ++i) {
    source_.Fail(Unavailable("gone"));
    if (i < 11) {
      while (source_.questions.empty()) Pass(Milliseconds(10));
    }
  }
  for (int i = 0; i < 10; ++i) ASSERT_EQ(Ask(10'000'000), Verdict::kRefused);
  while (source_.questions.empty()) Pass(Milliseconds(10));
  EXPECT_LE(source_.asked(), 200);
}

}  // namespace
}  // namespace firn
