#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "tests/server/issue/plugin_rig.h"

namespace firn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Tag `order` with plugins a, b and c, listed in another order; tag `user` with b only.
class PluginChainTest : public testing::Test {
 protected:
  PluginChainTest() {
    EXPECT_EQ(issuer_.Set({"order", strategy_, {c_, a_, b_}}), Status());
    EXPECT_EQ(issuer_.Set({"user", strategy_, {b_}}), Status());
  }

  Verdict Ask(std::string_view tag, int64_t count = 1) {
    log_.clear();
    call_.Begin(*issuer_.Resolve(tag), {.tag = tag, .count = count});
    return issuer_.Issue(call_);
  }
  // Checks that a call is refused for `reason`, while a call of another tag is served.
  void ExpectOnlyThisCallIsHarmed(Reason reason, const char* words) {
    EXPECT_EQ(Ask("order", 3), Verdict::kRefused);
    EXPECT_EQ(call_.refusal().reason, reason);
    EXPECT_THAT(call_.refusal().message, HasSubstr(words));
    EXPECT_TRUE(call_.runs().empty());
    const std::vector<std::string> log = log_;
    EXPECT_EQ(Ask("user", 3), Verdict::kIssued);
    EXPECT_EQ(call_.runs().count(), 3);
    log_ = log;
  }

  std::vector<std::string> log_;
  std::shared_ptr<ScriptedPlugin> a_ = std::make_shared<ScriptedPlugin>("a", 1, &log_);
  std::shared_ptr<ScriptedPlugin> b_ = std::make_shared<ScriptedPlugin>("b", 2, &log_);
  std::shared_ptr<ScriptedPlugin> c_ = std::make_shared<ScriptedPlugin>("c", 3, &log_);
  std::shared_ptr<CountingStrategy> strategy_ = std::make_shared<CountingStrategy>();
  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
  IssueCall call_;
};

TEST_F(PluginChainTest, RunsPluginsInAscendingOrder) {
  EXPECT_EQ(Ask("order"), Verdict::kIssued);
  EXPECT_THAT(log_,
              ElementsAre("a before", "b before", "c before", "a after", "b after", "c after"));
}

TEST_F(PluginChainTest, OnePluginServesManyTagsAndATagHasMany) {
  EXPECT_EQ(Ask("user"), Verdict::kIssued);
  EXPECT_THAT(log_, ElementsAre("b before", "b after"));
}

TEST_F(PluginChainTest, PluginsOfOneOrderRunAsTheTagNamesThem) {
  const auto first = std::make_shared<ScriptedPlugin>("z", 5, &log_);
  const auto second = std::make_shared<ScriptedPlugin>("y", 5, &log_);
  ASSERT_EQ(issuer_.Set({"twins", strategy_, {first, second}}), Status());
  Ask("twins");
  EXPECT_THAT(log_, ElementsAre("z before", "y before", "z after", "y after"));
}

TEST_F(PluginChainTest, ARefusalBeforeEndsTheCallWithoutLaterPlugins) {
  b_->before = [](const Request&) { return Refusal{Reason::kRejected, "enough", 20, true}; };
  EXPECT_EQ(Ask("order"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal(), (Refusal{Reason::kRejected, "enough", 20, true}));
  EXPECT_THAT(log_, ElementsAre("a before", "b before", "a refused REJECTED"));
  EXPECT_EQ(strategy_->next, 1) << "an id was taken";
}

TEST_F(PluginChainTest, ReportsARefusalOfTheStrategyToAllPlugins) {
  strategy_->throws = true;
  EXPECT_EQ(Ask("order"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().reason, Reason::kInternal);
  EXPECT_THAT(log_, ElementsAre("a before", "b before", "c before", "a refused INTERNAL",
                                "b refused INTERNAL", "c refused INTERNAL"));
}

TEST_F(PluginChainTest, ARefusalAfterWithholdsTheIds) {
  b_->after = [](const Request&, Runs&) { return Refusal{Reason::kRejected, "too large"}; };
  EXPECT_EQ(Ask("order", 3), Verdict::kRefused);
  EXPECT_TRUE(call_.runs().empty());
  EXPECT_THAT(log_, ElementsAre("a before", "b before", "c before", "a after", "b after",
                                "a refused REJECTED", "b refused REJECTED", "c refused REJECTED"));
  EXPECT_EQ(strategy_->next, 4) << "the ids are lost and not issued again";
  EXPECT_EQ(strategy_->lost, 3);
}

TEST_F(PluginChainTest, APluginMayReplaceTheIds) {
  a_->after = [](const Request&, Runs& runs) {
    for (IdRun& run : runs.runs()) run.first += 1'000'000;
    return std::nullopt;
  };
  EXPECT_EQ(Ask("order", 2), Verdict::kIssued);
  EXPECT_EQ(call_.runs()[0], (IdRun{1'000'001, 2, 1}));
}

// Tag `user` with a plugin that takes long for each id, and a call that gets its ids in three
// parts.
class LongListTest : public PluginChainTest {
 protected:
  static constexpr int64_t kCount = 2 * PluginChain::kIdsPerPart + 1;

  LongListTest() {
    b_->does = Plugin::Effect::kEach;
    b_->after = [this](const Request&, Runs& runs) {
      parts_.push_back(runs.count());
      for (IdRun& run : runs.runs()) run.first += 1'000'000;
      return after_;
    };
    EXPECT_EQ(Ask("user", kCount), Verdict::kWait);
    EXPECT_TRUE(call_.has_all_ids());
    EXPECT_EQ(call_.ask_again_in().count(), 0);
  }
  void ExpectRefused(Reason reason) {
    EXPECT_EQ(call_.refusal().reason, reason);
    EXPECT_TRUE(call_.runs().empty());
    EXPECT_FALSE(call_.has_all_ids());
    EXPECT_EQ(strategy_->lost, kCount);
    EXPECT_EQ(log_.back(), "b refused " + std::string(ReasonName(reason)));
    after_.reset();
    EXPECT_EQ(Ask("user"), Verdict::kIssued);
    EXPECT_EQ(call_.runs()[0].first, 1'000'000 + kCount + 1);
  }

  std::vector<int64_t> parts_;
  std::optional<Refusal> after_;
};

TEST_F(LongListTest, IsGivenInParts) {
  issuer_.Drain();
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait) << "a call that has its ids may end";
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kIssued);
  EXPECT_THAT(parts_, ElementsAre(PluginChain::kIdsPerPart, PluginChain::kIdsPerPart, 1));
  EXPECT_EQ(call_.runs().size(), 1u);
  EXPECT_EQ(call_.runs()[0], (IdRun{1'000'001, kCount, 1}));
  EXPECT_EQ(strategy_->lost, 0);
}

TEST_F(LongListTest, IsLostIfThePluginRefusesAPart) {
  after_ = Refusal{Reason::kExhausted, "too large"};
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
  ExpectRefused(Reason::kExhausted);
}

TEST_F(LongListTest, IsLostIfTheCallerLeaves) {
  issuer_.GiveUp(call_);
  ExpectRefused(Reason::kOverloaded);
}

TEST_F(LongListTest, IsNotIssuedIfOthersMayGetItsIds) {
  strategy_->dropped = true;
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kRefused);
  ExpectRefused(Reason::kStoreDown);
}

// --- plugins that misbehave ----------------------------------------------------------------------

TEST_F(PluginChainTest, AnExceptionBeforeRefusesOnlyItsCall) {
  a_->before = [](const Request&) -> std::optional<Refusal> { throw std::runtime_error("oops"); };
  ExpectOnlyThisCallIsHarmed(Reason::kInternal, "plugin a threw: oops");
  EXPECT_THAT(log_, ElementsAre("a before"));
}

TEST_F(PluginChainTest, AnUnknownThrownTypeRefusesOnlyItsCall) {
  a_->before = [](const Request&) -> std::optional<Refusal> { throw 42; };
  ExpectOnlyThisCallIsHarmed(Reason::kInternal, "plugin a threw something");
}

TEST_F(PluginChainTest, AnExceptionAfterRefusesOnlyItsCall) {
  c_->after = [](const Request&, Runs&) -> std::optional<Refusal> {
    throw std::runtime_error("oops");
  };
  ExpectOnlyThisCallIsHarmed(Reason::kInternal, "plugin c threw: oops");
}

TEST_F(PluginChainTest, AnExceptionInOnRefusalIsIgnored) {
  c_->before = [](const Request&) { return Refusal{Reason::kRejected, "enough"}; };
  a_->on_refusal = [] { throw std::runtime_error("oops"); };
  ExpectOnlyThisCallIsHarmed(Reason::kRejected, "enough");
  EXPECT_THAT(log_, ElementsAre("a before", "b before", "c before", "a refused REJECTED",
                                "b refused REJECTED"));
}

TEST_F(PluginChainTest, ARefusalWithAnInvalidReasonIsInternal) {
  a_->before = [](const Request&) { return Refusal{static_cast<Reason>(99), "?"}; };
  ExpectOnlyThisCallIsHarmed(Reason::kInternal, "refused with an invalid reason");
}

TEST_F(PluginChainTest, ANegativeRetryTimeIsOmitted) {
  a_->before = [](const Request&) { return Refusal{Reason::kRejected, "enough", -5}; };
  EXPECT_EQ(Ask("order"), Verdict::kRefused);
  EXPECT_EQ(call_.refusal().retry_after_ms, 0);
}

struct Nonsense {
  const char* name;
  std::function<void(Runs&)> make;
};

class PluginNonsense : public PluginChainTest, public testing::WithParamInterface<Nonsense> {};

TEST_P(PluginNonsense, HarmsOnlyItsCall) {
  b_->after = [](const Request&, Runs& runs) {
    GetParam().make(runs);
    return std::nullopt;
  };
  // Tag `user` has the same plugin, so the call that must succeed uses another plugin.
  ASSERT_EQ(issuer_.Set({"user", strategy_, {a_}}), Status());
  ExpectOnlyThisCallIsHarmed(Reason::kInternal, "plugin b returned invalid ids");
}

IdRun& First(Runs& runs) { return runs.runs()[0]; }

INSTANTIATE_TEST_SUITE_P(
    All, PluginNonsense,
    testing::Values(Nonsense{"NoIds", [](Runs& runs) { runs.Clear(); }},
                    Nonsense{"TooMany", [](Runs& runs) { First(runs).count = 4; }},
                    Nonsense{"NoneInARun",
                             [](Runs& runs) {
                               runs.Add({900, 0, 7});
                             }},
                    Nonsense{"SumThatFits",
                             [](Runs& runs) {
                               First(runs).count = 5;
                               runs.Add({900, -2, 7});
                             }},
                    Nonsense{"SumThatOverflows",
                             [](Runs& runs) {
                               First(runs).count = INT64_MAX;
                               runs.Add({900, INT64_MAX, 7});
                             }},
                    Nonsense{"Negative", [](Runs& runs) { First(runs).first = -1; }},
                    Nonsense{"AllTheSame", [](Runs& runs) { First(runs).stride = 0; }},
                    Nonsense{"Overflowing", [](Runs& runs) { First(runs).first = INT64_MAX - 1; }}),
    [](const auto& param) { return std::string(param.param.name); });

// --- calls that wait ----------------------------------------------------------------------------

TEST_F(PluginChainTest, RunsOncePerCallEvenIfItIsParked) {
  strategy_->waits = 3;
  EXPECT_EQ(Ask("order"), Verdict::kWait);
  EXPECT_EQ(call_.ask_again_in(), std::chrono::microseconds(500));
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait);
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kWait);
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kIssued);
  EXPECT_THAT(log_,
              ElementsAre("a before", "b before", "c before", "a after", "b after", "c after"));
}

TEST_F(PluginChainTest, AnAbandonedCallIsReportedAsARefusal) {
  strategy_->waits = 3;
  EXPECT_EQ(Ask("user"), Verdict::kWait);
  EXPECT_EQ(issuer_.GiveUp(call_), (Refusal{Reason::kOverloaded, "it took too long"}));
  EXPECT_THAT(log_, ElementsAre("b before", "b refused OVERLOADED"));
  EXPECT_THAT(rejections_.reasons, ElementsAre(Reason::kOverloaded));
}

TEST_F(PluginChainTest, AWaitingCallKeepsItsPluginsWhenItsTagChanges) {
  strategy_->waits = 1;
  EXPECT_EQ(Ask("user"), Verdict::kWait);
  ASSERT_EQ(issuer_.Set({"user", strategy_, {c_}}), Status());
  EXPECT_EQ(issuer_.Issue(call_), Verdict::kIssued);
  EXPECT_THAT(log_, ElementsAre("b before", "b after"));
}

TEST_F(PluginChainTest, ATagWithPluginsDoesNotUseTheFastPath) {
  int64_t id = 0;
  EXPECT_FALSE(issuer_.TryOne(*issuer_.Resolve("order"), Method::kThrift, &id));
  EXPECT_THAT(log_, IsEmpty());
}

}  // namespace
}  // namespace firn
