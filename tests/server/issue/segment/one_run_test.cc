// Calls for consecutive numbers (Form::kOneRun).

#include <memory>

#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "server/issue/refusing_strategy.h"
#include "server/issue/segment/segment.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/segment/segment_rig.h"

namespace firn {
namespace {

class OneRunTest : public RangedRig<Segment> {
 protected:
  OneRunTest() {
    TagDefinition tag;
    tag.step = 100;
    tag.step_max = 100;
    tag.prefetch_at = 100;
    Make(tag);
    EXPECT_TRUE(issuer_.Set({"order", strategy_, {}}).ok());
    EXPECT_EQ(AskOneRun(10), Verdict::kWait);
    source_.Answer();
    EXPECT_EQ(Again(), Verdict::kIssued);
  }

  Verdict AskOneRun(int64_t count, const char* tag = "order") {
    call_.Begin({.tag = tag, .count = count, .form = Form::kOneRun});
    return Again();
  }
  Verdict Again() { return issuer_.Issue(call_); }

  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
};

TEST_F(OneRunTest, ARefusedTagGivesItsOwnReason) {
  const auto refusing = std::make_shared<RefusingStrategy>(Refusal{Reason::kNotReady, "wait"});
  EXPECT_TRUE(issuer_.Set({"unread", refusing, {}}).ok());
  EXPECT_EQ(AskOneRun(10, "unread"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kNotReady);
}

TEST_F(OneRunTest, IsConsecutive) {
  EXPECT_EQ(AskOneRun(90), Verdict::kIssued);
  ASSERT_EQ(call_.runs().size(), 1u);
  EXPECT_EQ(call_.runs()[0], (IdRun{11, 90, 1}));
  EXPECT_EQ(strategy_->status().wasted, 0);
}

TEST_F(OneRunTest, WastesTheRestOfARangeThatIsTooShort) {
  EXPECT_EQ(AskOneRun(91), Verdict::kWait);
  EXPECT_EQ(strategy_->status().wasted, 90);
  source_.Answer();
  EXPECT_EQ(Again(), Verdict::kIssued);
  ASSERT_EQ(call_.runs().size(), 1u);
  EXPECT_EQ(call_.runs()[0], (IdRun{101, 91, 1}));
  EXPECT_EQ(strategy_->status().wasted, 90);
}

TEST_F(OneRunTest, HasAtMostTheTagsStep) {
  EXPECT_EQ(AskOneRun(101), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kBadRequest);
  EXPECT_NE(call_.refusal().message.find("step, 100"), std::string::npos);
  EXPECT_EQ(One(), 11) << "a refusal takes no number";
}

TEST_F(OneRunTest, IsRefusedByAStrategyWithoutRanges) {
  ASSERT_TRUE(issuer_.Set({"other", std::make_shared<CountingStrategy>(), {}}).ok());
  EXPECT_EQ(AskOneRun(2, "other"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kBadRequest);
}

// As a plugin that hides the numbers does.
TEST_F(OneRunTest, IsRefusedWhenAPluginChangesTheNumbers) {
  std::vector<std::string> log;
  const auto reverse = std::make_shared<ScriptedPlugin>("reverse", 0, &log);
  reverse->after = [](const Request&, Runs& runs) {
    const IdRun run = runs[0];
    runs.Clear();
    for (int64_t i = run.count; i-- > 0;) runs.Add({run.At(i), 1, 1});
    return std::nullopt;
  };
  ASSERT_TRUE(issuer_.Set({"order", strategy_, {reverse}}).ok());
  EXPECT_EQ(AskOneRun(2), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kRejected);
  EXPECT_EQ(log.back(), "reverse refused REJECTED");
}

}  // namespace
}  // namespace firn
