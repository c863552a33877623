#include "server/issue/dated/dated.h"

#include <gtest/gtest.h>

#include "server/issue/dated/dated_pick.h"
#include "server/issue/issuer.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/segment/segment_rig.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// One tag at noon of 2026-11-22. The source answers like a ledger, when the test says so.
class DatedTest : public testing::Test {
 protected:
  void Make(TagDefinition tag = {}) {
    tag.name = "order";
    tag.strategy = "dated";
    tag.step = 10;
    tag.prefetch_at = 50;
    definition_ = tag;
    registry_time_.Note(clock_.Wall(), clock_.Boot());
    auto made = Dated::Make(tag, {source_, clock_, entropy_, [] {}}, registry_time_);
    ASSERT_TRUE(made.ok()) << made.status();
    strategy_ = *std::move(made);
  }

  // With 99 numbers a day.
  void MakeShort() {
    TagDefinition tag;
    tag.digits = 2;
    Make(tag);
  }

  void Answer() {
    TagDefinition tag = definition_;
    tag.high = high_;
    const auto range = PickDated(tag, source_.asked(), *registry_time_.At(clock_.Boot()));
    if (range.ok()) high_ = range->end;
    source_.AnswerWith(range);
  }
  void AnswerAll() {
    while (!source_.questions.empty()) Answer();
  }

  Verdict Ask(int64_t count = 1) {
    call_.Begin({.count = count});
    return AskAgain();
  }
  Verdict AskAgain() {
    const Verdict verdict = strategy_->Issue(call_);
    const bool loses = verdict == Verdict::kRefused && !call_.runs().empty();
    if (loses) strategy_->TakeBack(call_);  // as an issuer
    return verdict;
  }
  // A call asks for 90 numbers; returns how many the first answer gives.
  int64_t GetSomeOfNinety() {
    MakeShort();
    EXPECT_EQ(Ask(90), Verdict::kWait);
    Answer();
    return high_ - 2026112201;
  }
  // Takes a number, after an answer of the source if necessary.
  int64_t One() {
    int64_t id = 0;
    if (strategy_->TryOne(Method::kEmbedded, &id)) return id;
    Verdict verdict = Ask();
    AnswerAll();
    if (verdict == Verdict::kWait) verdict = AskAgain();
    EXPECT_EQ(verdict, Verdict::kIssued) << call_.refusal();
    return call_.runs().empty() ? -1 : call_.runs()[0].first;
  }

  void Pass(Milliseconds time) {
    clock_.Advance(time);
    strategy_->Tick(clock_.Boot());
  }

  VirtualClock clock_{At("2026-11-22T12:00:00Z")};
  SeededEntropy entropy_{1};
  ScriptedSource source_;
  RegistryTime registry_time_;
  int64_t high_ = 0;
  TagDefinition definition_;
  std::shared_ptr<Dated> strategy_;
  IssueCall call_;
};

TEST_F(DatedTest, CountsFromOneEachDay) {
  Make();
  EXPECT_EQ(One(), 20261122000001);
  EXPECT_EQ(One(), 20261122000002);
  Pass(12 * kAnHour);
  EXPECT_EQ(One(), 20261123000001);
}

TEST_F(DatedTest, GivesNoNumbersOfADayThatIsOver) {
  Make();
  One();
  clock_.Advance(12 * kAnHour - Milliseconds(1));
  EXPECT_EQ(One(), 20261122000002);
  clock_.Advance(Milliseconds(1));
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(Ask(), Verdict::kWait);
  EXPECT_EQ(strategy_->status().wasted, 8);
}

TEST_F(DatedTest, DoesNotFetchAfterTheDaysEndUntilACall) {
  TagDefinition tag;
  tag.period_grace = 2 * 3'600;
  Make(tag);
  One();
  Pass(12 * kAnHour);
  Pass(kAnHour);
  EXPECT_TRUE(source_.questions.empty());
  Pass(kAnHour);
  EXPECT_EQ(strategy_->status().supply, 0);
}

TEST_F(DatedTest, FetchesANewDaysRangeIfTheLastDayWasUsed) {
  Make();
  clock_.Advance(12 * kAnHour - Milliseconds(60'000));
  One();
  Pass(Milliseconds(59'999));
  EXPECT_TRUE(source_.questions.empty());
  Pass(Milliseconds(1));
  ASSERT_EQ(source_.questions.size(), 1u);
  Answer();
  int64_t id = 0;
  EXPECT_TRUE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(id, 20261123000001);
}

TEST_F(DatedTest, FollowsTheRegistrysClock) {
  Make();
  One();
  registry_time_.Note(clock_.Wall() + 12 * kAnHour, clock_.Boot());
  EXPECT_EQ(One(), 20261123000001);
  registry_time_.Note(clock_.Wall(), clock_.Boot());  // a day that was reached is not left
  EXPECT_EQ(One(), 20261123000002);
}

TEST_F(DatedTest, GivesNothingWithoutTheRegistrysTime) {
  Make();
  const RegistryTime untold;
  auto made = Dated::Make(definition_, {source_, clock_, entropy_, [] {}}, untold);
  strategy_ = *std::move(made);
  EXPECT_EQ(Ask(), Verdict::kWait);
  AnswerAll();
  EXPECT_NE(AskAgain(), Verdict::kIssued);
}

TEST_F(DatedTest, FetchesTheNextRangeAheadWithinTheDay) {
  Make();
  for (int i = 0; i < 5; ++i) One();
  ASSERT_EQ(source_.questions.size(), 1u);
  Answer();
  EXPECT_EQ(strategy_->status().supply, 15);
}

TEST_F(DatedTest, AdaptsStepsAndIgnoresDaysThatEnded) {
  Make();
  for (int i = 0; i < 10; ++i) One();
  EXPECT_EQ(strategy_->status().step, 20);
  AnswerAll();
  One();
  Pass(12 * kAnHour);
  One();
  EXPECT_EQ(strategy_->status().step, 20);
}

TEST_F(DatedTest, RefusesAUsedUpDayWithTheTimeToTheNext) {
  MakeShort();
  for (int i = 1; i < 100; ++i) EXPECT_EQ(One(), 2026112200 + i);
  Ask();
  AnswerAll();
  EXPECT_EQ(Ask(), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded);
  EXPECT_EQ(call_.refusal().retry_after_ms, (12 * kAnHour).count());
  EXPECT_TRUE(call_.refusal().another_server_may_help);
  EXPECT_EQ(strategy_->WhyNot()->reason, Reason::kOverloaded);
  Pass(12 * kAnHour);
  EXPECT_EQ(One(), 2026112301);
}

TEST_F(DatedTest, IssuesNumbersThatOthersGaveBackToAUsedUpDay) {
  MakeShort();
  PromptSource prompt(source_);
  strategy_ = *Dated::Make(definition_, {prompt, clock_, entropy_, [] {}}, registry_time_);
  for (int i = 1; i <= 5; ++i) EXPECT_EQ(One(), 2026112200 + i);
  source_.Fail(Unavailable("away"));
  for (int i = 6; i <= 10; ++i) EXPECT_EQ(One(), 2026112200 + i);
  high_ = 2026112300;  // other servers took the rest
  Pass(Milliseconds(3'000));
  AnswerAll();
  EXPECT_EQ(Ask(), Verdict::kRefused);
  high_ = 2026112290;  // and one of them stopped, giving its tail back
  Pass(Milliseconds(3'000));
  prompt.then = [this] { AnswerAll(); };
  EXPECT_EQ(Ask(), Verdict::kWait) << call_.refusal();
  EXPECT_EQ(AskAgain(), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 2026112290);
}

TEST_F(DatedTest, RefusesACallForMoreThanTheDayHasLeft) {
  MakeShort();
  EXPECT_EQ(One(), 2026112201);
  EXPECT_EQ(Ask(99), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kOverloaded);
  EXPECT_EQ(call_.refusal().retry_after_ms, (12 * kAnHour).count());
  EXPECT_EQ(Ask(100), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kBadRequest);
  EXPECT_EQ(One(), 2026112202) << "no number is lost";

  Verdict all = Ask(97);  // exactly the rest
  for (int i = 0; i < 20 && all == Verdict::kWait; ++i) {
    AnswerAll();
    all = AskAgain();
  }
  EXPECT_EQ(all, Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0].first, 2026112203);
  EXPECT_EQ(call_.runs().count(), 97);
}

// Other servers take numbers of the day while the call waits.
TEST_F(DatedTest, ARefusedCallReturnsItsLastNumbersAndWastesTheOthers) {
  const int64_t got = GetSomeOfNinety();
  high_ += 5;  // of another server
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  Answer();
  const int64_t last = high_ - 2026112206 - got;
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  high_ = 2026112300;  // other servers take the rest of the day
  AnswerAll();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(strategy_->status().wasted, got) << "the first range is not in memory any more";
  EXPECT_EQ(strategy_->status().supply, last);
  EXPECT_EQ(Ask(last), Verdict::kIssued) << "the second one was returned";
  EXPECT_EQ(strategy_->status().wasted, got);
}

TEST_F(DatedTest, ARefusedCallWastesItsNumbersIfOthersTookTheNextOnes) {
  const int64_t got = GetSomeOfNinety();
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  Answer();
  int64_t id = 0;
  ASSERT_TRUE(strategy_->TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(id, 2026112201 + got) << "it follows what the call has got";
  strategy_->Close();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(strategy_->status().wasted, got);
}

TEST_F(DatedTest, ACallThatTheEndRefusesReturnsItsNumbersWhileTheyCanBeGivenBack) {
  const int64_t got = GetSomeOfNinety();
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  strategy_->Close();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_EQ(strategy_->status().wasted, 0);
  EXPECT_EQ(strategy_->status().supply, got);
}

TEST_F(DatedTest, ACallThatTimesOutReturnsItsNumbers) {
  MakeShort();
  RecordingRejections rejections;
  Issuer issuer(rejections);
  ASSERT_EQ(issuer.Set({"order", strategy_, {}}), Status());
  call_.Begin(*issuer.Resolve("order"), {.tag = "order", .count = 90});
  ASSERT_EQ(issuer.Issue(call_), Verdict::kWait);
  Answer();
  const int64_t got = high_ - 2026112201;
  ASSERT_EQ(issuer.Issue(call_), Verdict::kWait);
  EXPECT_EQ(strategy_->NextAtLeast(), 2026112201 + got);
  issuer.GiveUp(call_);
  EXPECT_EQ(strategy_->status().wasted, 0);
  EXPECT_EQ(strategy_->NextAtLeast(), 2026112201);
  EXPECT_EQ(One(), 2026112201);
}

TEST_F(DatedTest, CountsTheNumbersOfACallThatTheStopRefusesAsWasted) {
  const int64_t got = GetSomeOfNinety();
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  AnswerAll();
  strategy_->Stop();
  EXPECT_EQ(AskAgain(), Verdict::kRefused);
  EXPECT_GE(strategy_->status().wasted, got);
}

TEST_F(DatedTest, IssuesDuringTheGraceWhileTheRegistryIsUnreachable) {
  TagDefinition tag;
  tag.period_grace = 60;
  Make(tag);
  One();
  clock_.Advance(12 * kAnHour);
  EXPECT_EQ(Ask(), Verdict::kWait);  // the strategy first sends a request to the registry
  source_.Fail(Unavailable("away"));
  EXPECT_EQ(One(), 20261122000002);
  Pass(Milliseconds(59'000));
  ASSERT_FALSE(source_.questions.empty());
  source_.Fail(Unavailable("away"));
  EXPECT_EQ(One(), 20261122000003);
  clock_.Advance(Milliseconds(1'000));
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id));
}

// For example after a machine's sleep: the time since the day's end is unknown.
TEST_F(DatedTest, ARangeThatArrivesAfterItsDayHasNoGrace) {
  TagDefinition tag;
  tag.period_grace = 60;
  Make(tag);
  EXPECT_EQ(Ask(), Verdict::kWait);
  clock_.Advance(36 * kAnHour);
  source_.AnswerWith(Range{20261122000001, 20261122000011});
  EXPECT_EQ(AskAgain(), Verdict::kWait);
  EXPECT_TRUE(source_.questions.empty()) << "a late source is not asked again at once";
  EXPECT_EQ(strategy_->status().failures, 1);
  Pass(Milliseconds(100));
  ASSERT_FALSE(source_.questions.empty()) << "a range of the current day must be requested";
  source_.Fail(Unavailable("away"));
  int64_t id = 0;
  EXPECT_FALSE(strategy_->TryOne(Method::kEmbedded, &id)) << id;
  EXPECT_EQ(strategy_->status().wasted, 10);
}

TEST_F(DatedTest, TheGraceEndsWhenTheRegistryIsBack) {
  TagDefinition tag;
  tag.period_grace = 3'600;
  Make(tag);
  One();
  clock_.Advance(12 * kAnHour);
  Ask();
  source_.Fail(Unavailable("away"));
  EXPECT_EQ(One(), 20261122000002);
  Pass(Milliseconds(3'000));
  AnswerAll();
  EXPECT_EQ(One(), 20261123000001);
}

TEST_F(DatedTest, GivesUnusedNumbersBack) {
  Make();
  for (int i = 0; i < 6; ++i) One();
  AnswerAll();
  source_.next = 20261122000021;
  strategy_->Stop();
  ASSERT_EQ(source_.given_back.size(), 1u);
  EXPECT_EQ(source_.given_back[0], (Range{20261122000007, 20261122000021}));
  EXPECT_TRUE(strategy_->settled());
  EXPECT_EQ(Ask(), Verdict::kRefused);
}

TEST_F(DatedTest, AbandonOrDropWastesItsNumbers) {
  Make();
  One();
  strategy_->Drop("data were lost");
  EXPECT_EQ(strategy_->status().wasted, 9);
  Pass(Milliseconds(3'000));
  EXPECT_EQ(One(), 20261122000011);
  strategy_->Abandon();
  EXPECT_TRUE(source_.given_back.empty());
  EXPECT_EQ(strategy_->status().wasted, 18);
}

TEST_F(DatedTest, ARaisedStartDropsNumbersBelowIt) {
  Make();
  One();
  definition_.start = 20261122000006;
  strategy_->Adjust(definition_);
  EXPECT_EQ(One(), 20261122000006);
}

TEST_F(DatedTest, DiscardsARangeOfNoPeriodOrBelowTheLast) {
  Make();
  const Range bad[] = {{1, 11}, {20261122999999, 20261123000002}, {20261122000000, 20261122000010}};
  for (const Range& range : bad) {
    EXPECT_EQ(Ask(), Verdict::kWait);
    source_.AnswerWith(range);
    EXPECT_EQ(strategy_->status().supply, 0) << range;
    Pass(Milliseconds(3'000));
  }
}

TEST_F(DatedTest, ReportsAnInvalidZone) {
  TagDefinition tag{.name = "order", .strategy = "dated"};
  tag.zone = "Nowhere/Land";
  EXPECT_FALSE(Dated::Make(tag, {source_, clock_, entropy_, [] {}}, registry_time_).ok());
}

}  // namespace
}  // namespace firn
