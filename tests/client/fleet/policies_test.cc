// Tests the classes that decide about servers and retries: health, latency, retry budget, the
// server's cluster, and plausible ids.

#include <gtest/gtest.h>

#include "client/fleet/cluster_check.h"
#include "client/fleet/health.h"
#include "client/fleet/peak_ewma.h"
#include "client/fleet/retry_budget.h"
#include "client/fleet/server_backoff.h"
#include "client/wire/id_check.h"
#include "client/wire/wire_values.h"

namespace firn::client {
namespace {

constexpr Micros kSecond{1'000'000};
constexpr Micros kStart{1'000'000'000};

// --- health -------------------------------------------------------------------------------------

class HealthTest : public testing::Test {
 protected:
  SeededEntropy entropy_{7};
  Health health_;
};

TEST_F(HealthTest, IsUnhealthyAfterThreeConsecutiveFailures) {
  health_.Failed(1);
  health_.Failed(1);
  EXPECT_FALSE(health_.TooManyFailures());
  health_.Failed(1);
  EXPECT_TRUE(health_.TooManyFailures());
}

TEST_F(HealthTest, CountsSomeFailuresTwice) {
  health_.Failed(2);
  EXPECT_FALSE(health_.TooManyFailures());
  health_.Failed(2);
  EXPECT_TRUE(health_.TooManyFailures());
}

TEST_F(HealthTest, IsUnhealthyWhenHalfOfTheLastTwentyFailed) {
  for (int i = 0; i < 9; ++i) {
    health_.Failed(1);
    health_.Succeeded();
  }
  health_.Succeeded();
  EXPECT_FALSE(health_.TooManyFailures());
  health_.Failed(1);
  EXPECT_TRUE(health_.TooManyFailures());
}

TEST_F(HealthTest, ForgetsOldFailures) {
  for (int i = 0; i < 9; ++i) {
    health_.Failed(1);
    health_.Succeeded();
  }
  for (int i = 0; i < 20; ++i) health_.Succeeded();
  health_.Failed(2);
  EXPECT_FALSE(health_.TooManyFailures());
}

TEST_F(HealthTest, DoublesTheEjectionUpToThirtySeconds) {
  Micros now = kStart;
  Micros longest = kSecond;
  for (int i = 0; i < 10; ++i) {
    const Micros rest = health_.TakeOut(true, now, entropy_);
    EXPECT_GE(rest, longest / 2);
    EXPECT_LE(rest, longest);
    EXPECT_FALSE(health_.TakeProbe(now + rest - Micros(1)));
    now += rest;
    EXPECT_TRUE(health_.TakeProbe(now));
    EXPECT_FALSE(health_.TakeProbe(now)) << "one probe a rest";
    longest = std::min(longest * 2, 30 * kSecond);
  }
}

TEST_F(HealthTest, AnAnsweredCallResetsEverything) {
  health_.Failed(3);
  for (int i = 0; i < 4; ++i) health_.TakeOut(true, kStart, entropy_);
  health_.Succeeded();
  EXPECT_FALSE(health_.ejected());
  EXPECT_FALSE(health_.TooManyFailures());
  EXPECT_LE(health_.TakeOut(true, kStart, entropy_), kSecond) << "the next ejection is a first one";
}

TEST_F(HealthTest, AnAnsweredProbeDoesNotResetTheBackoff) {
  health_.TakeOut(true, kStart, entropy_);
  health_.Seen();
  EXPECT_FALSE(health_.out());
  EXPECT_GE(health_.TakeOut(true, kStart, entropy_), kSecond);
}

TEST_F(HealthTest, IsFailingIfItMayNotBeEjected) {
  health_.TakeOut(false, kStart, entropy_);
  EXPECT_TRUE(health_.failing());
  EXPECT_FALSE(health_.ejected());
  EXPECT_TRUE(health_.TakeProbe(kStart + kSecond));
  health_.TakeOut(true, kStart, entropy_);
  EXPECT_TRUE(health_.ejected());
}

TEST(SpellTest, RestartsAfterALongPause) {
  SeededEntropy entropy(1);
  ServerBackoff backoff(kSecond, 30 * kSecond);
  Micros now = kStart;
  for (int i = 0; i < 4; ++i) now += backoff.Next(now, entropy);
  EXPECT_GT(backoff.Next(now, entropy), kSecond);
  EXPECT_LE(backoff.Next(now + 61 * kSecond, entropy), kSecond);
}

// --- latency ------------------------------------------------------------------------------------

TEST(PeakEwmaTest, IsZeroAtFirst) { EXPECT_EQ(PeakEwma().At(kStart), 0); }

TEST(PeakEwmaTest, RisesAtOnceAndFallsSlowly) {
  PeakEwma latency;
  latency.Observe(Micros(100), kStart);
  latency.Observe(Micros(5000), kStart + Micros(100));
  EXPECT_NEAR(latency.At(kStart + Micros(100)), 5000, 1);
  latency.Observe(Micros(100), kStart + Micros(200));
  EXPECT_GT(latency.At(kStart + Micros(200)), 4900);
  for (int i = 1; i < 100; ++i) latency.Observe(Micros(100), kStart + i * kSecond / 10);
  EXPECT_LT(latency.At(kStart + 10 * kSecond), 110);
}

TEST(PeakEwmaTest, DecaysWhileAServerIsNotUsed) {
  PeakEwma latency;
  latency.Observe(Micros(80'000), kStart);
  EXPECT_LT(latency.At(kStart + 7 * kSecond), 100);
}

// --- budget -------------------------------------------------------------------------------------

TEST(RetryBudgetTest, PermitsAFifthOfTheCallsAndTenASecond) {
  RetryBudget budget;
  Micros now = kStart;
  int taken = 0;
  while (budget.Take(now)) ++taken;
  EXPECT_EQ(taken, static_cast<int>(RetryBudget::kMost));
  for (int second = 0; second < 10; ++second) {
    taken = 0;
    for (int call = 0; call < 100; ++call) {
      budget.Calls(1);
      now += kSecond / 100;
      while (budget.Take(now)) ++taken;
    }
    EXPECT_NEAR(taken, 20 + 10, 1);
  }
}

TEST(RetryBudgetTest, SavesAtMostItsMaximum) {
  RetryBudget budget;
  for (int i = 0; i < 100'000; ++i) budget.Calls(1);
  int taken = 0;
  while (budget.Take(kStart)) ++taken;
  EXPECT_EQ(taken, static_cast<int>(RetryBudget::kMost));
}

// --- the server's cluster -----------------------------------------------------------------------

ServerFacts Facts(const std::string& uuid, const std::string& layout = "firn") {
  ServerFacts facts;
  facts.cluster_uuid = uuid;
  facts.cluster_name = "shop";
  facts.layout = layout;
  return facts;
}

TEST(ClusterCheckTest, IsDeterminedByTheFirstServerIfUnspecified) {
  ClusterCheck check("");
  EXPECT_EQ(check.FaultOf(Facts("a")), std::nullopt);
  EXPECT_EQ(check.FaultOf(Facts("a")), std::nullopt);
  EXPECT_NE(check.FaultOf(Facts("b")), std::nullopt);
  EXPECT_NE(check.FaultOf(Facts("a", "js")), std::nullopt);
  EXPECT_EQ(check.known().name, "shop");
}

TEST(ClusterCheckTest, PrefersTheSourceAndTheOptionsToServers) {
  ClusterCheck by_source("");
  by_source.Learn({.uuid = "a", .name = {}, .layout = "firn"});
  EXPECT_NE(by_source.FaultOf(Facts("b")), std::nullopt);
  EXPECT_NE(by_source.FaultOf(Facts("a", "js")), std::nullopt);
  EXPECT_EQ(by_source.FaultOf(Facts("a")), std::nullopt);
  by_source.Learn({.uuid = "b", .name = {}, .layout = "js"});
  EXPECT_EQ(by_source.FaultOf(Facts("b", "js")), std::nullopt);

  ClusterCheck by_options("c");
  by_options.Learn({.uuid = "a", .name = {}, .layout = {}});
  EXPECT_NE(by_options.FaultOf(Facts("a")), std::nullopt);
  EXPECT_EQ(by_options.FaultOf(Facts("c")), std::nullopt);
}

TEST(ClusterCheckTest, DetectsAServerThatDoesNotKnowItsCluster) {
  ClusterCheck check("a");
  EXPECT_TRUE(check.KnowsTooLittle(Facts("")));
  EXPECT_FALSE(check.KnowsTooLittle(Facts("a")));
  EXPECT_FALSE(check.KnowsTooLittle(Facts("b")));
  EXPECT_FALSE(ClusterCheck("").KnowsTooLittle(Facts(""))) << "no cluster is specified";
}

TEST(ClusterCheckTest, RefusesAServerWithoutAnIdentity) {
  EXPECT_NE(ClusterCheck("").FaultOf(ServerFacts{}), std::nullopt);
}

// --- plausible ids ------------------------------------------------------------------------------

constexpr WallMs kWall{1'790'000'000'000};

class IdCheckTest : public testing::Test {
 protected:
  IdCheckTest() { facts_.timed = {"order"}; }

  // Returns an id of the layout whose time is `after` ahead of the server's clock, kWall.
  int64_t IdAt(Milliseconds after) const {
    const Layout layout = Layout::Parse(facts_.layout).value();
    return layout.Pack({.tick = layout.TickAt(kWall + after), .machine = MachineId(1)}).value();
  }
  // Returns whether the check accepts this id, `later` after the server has reported its clock.
  bool Takes(int64_t id, const std::string& tag = "order", Milliseconds later = Milliseconds(0)) {
    facts_.wall = kWall;
    const IdCheck check(facts_, kStart);
    const Ask ask{.method = Ask::Method::kGetId, .tag = tag};
    Reply reply;
    reply.id = id;
    return !check.FaultOf(ask, reply, kStart + later);
  }

  static constexpr std::chrono::hours kDays{24 * 30};
  ServerFacts facts_ = Facts("a");
};

TEST_F(IdCheckTest, AcceptsNegativeIdsOnlyIfTheVersionSetsTheSign) {
  for (const int64_t id : {int64_t{-1}, INT64_MIN, int64_t{0}}) EXPECT_FALSE(Takes(id, "other"));
  facts_.layout = "version:1=1 time:41 machine:10 sequence:12";
  EXPECT_TRUE(Takes(-1, "other"));
  EXPECT_TRUE(Takes(INT64_MIN, "other"));
  EXPECT_FALSE(Takes(0, "other"));
}

TEST_F(IdCheckTest, AcceptsOnlyTimesNearTheServersClock) {
  EXPECT_TRUE(Takes(IdAt(Milliseconds(0))));
  EXPECT_TRUE(Takes(IdAt(IdCheck::kSlack)));
  EXPECT_TRUE(Takes(IdAt(-IdCheck::kSlack)));
  EXPECT_FALSE(Takes(IdAt(IdCheck::kSlack + Milliseconds(1))));
  EXPECT_FALSE(Takes(IdAt(-IdCheck::kSlack - Milliseconds(1))));
  EXPECT_FALSE(Takes(1)) << "of the epoch";
}

TEST_F(IdCheckTest, FollowsTheServersClockDuringALongConnection) {
  EXPECT_FALSE(Takes(IdAt(kDays)));
  EXPECT_TRUE(Takes(IdAt(kDays), "order", kDays));
  EXPECT_FALSE(Takes(IdAt(Milliseconds(0)), "order", kDays));
}

TEST_F(IdCheckTest, RefusesIdsOutsideTheLayout) {
  facts_.layout = "zero:4 time:40 machine:10 sequence:9";
  EXPECT_TRUE(Takes(IdAt(Milliseconds(0))));
  EXPECT_FALSE(Takes(IdAt(Milliseconds(0)) | int64_t{1} << 60));
}

TEST_F(IdCheckTest, AcceptsAnyNumberOfATagWithoutTime) {
  EXPECT_TRUE(Takes(1, "invoice"));
  EXPECT_TRUE(Takes(INT64_MAX, "invoice"));
}

TEST_F(IdCheckTest, ChecksEveryIdAndBothEndsOfARun) {
  facts_.wall = kWall;
  const IdCheck check(facts_, kStart);
  const int64_t good = IdAt(Milliseconds(0)), bad = IdAt(kDays);
  Reply reply;
  reply.ids = {good, good + 1, bad};
  EXPECT_TRUE(check.FaultOf({.method = Ask::Method::kGetIds, .tag = "order"}, reply, kStart));
  reply.ids = {};
  reply.runs = {{good, 10, 1}, {good, 2, bad - good}};
  EXPECT_TRUE(check.FaultOf({.method = Ask::Method::kGetRuns, .tag = "order"}, reply, kStart));
  reply.runs.pop_back();
  EXPECT_FALSE(check.FaultOf({.method = Ask::Method::kGetRuns, .tag = "order"}, reply, kStart));
}

// --- the ids of one answer ----------------------------------------------------------------------

TEST(AnswerTest, AcceptsAscendingRuns) {
  using Runs = std::vector<IdRun>;
  const Runs kGood[] = {{{1, 10, 1}}, {{1, 4, 1}, {5, 6, 1}}, {{1, 5, 3}, {14, 5, 2}}};
  for (const Runs& runs : kGood) EXPECT_EQ(FaultOf(runs, 10), std::nullopt);
  const Runs kBad[] = {{{1, 5, 1}, {1, 5, 1}},  // a duplicate run
                       {{1, 5, 1}, {5, 5, 1}},  // one id in both
                       {{6, 5, 1}, {1, 5, 1}},  // descending
                       {{1, 5, 2}, {2, 5, 2}},  // one within the other
                       {{INT64_MAX, 1, 1}, {1, 9, 1}}};
  for (const Runs& runs : kBad) EXPECT_NE(FaultOf(runs, 10), std::nullopt) << runs[1].first;
}

TEST(AnswerTest, RefusesInvalidRuns) {
  using Runs = std::vector<IdRun>;
  for (const Runs& runs :
       {Runs{}, Runs{{1, 9, 1}}, Runs{{1, 0, 1}, {1, 10, 1}}, Runs{{1, 10, 0}}, Runs{{1, -10, 1}},
        Runs{{INT64_MAX - 8, 10, 1}}, Runs{{1, 10, INT64_MAX}}}) {
    EXPECT_NE(FaultOf(runs, 10), std::nullopt);
  }
}

TEST(AnswerTest, AcceptsIdsInAnyOrderButNoneTwice) {
  using Ids = std::vector<int64_t>;
  for (const Ids& ids : {Ids{1, 2, 3}, Ids{3, 1, 2}, Ids{-1, INT64_MIN, INT64_MAX}}) {
    EXPECT_EQ(FaultOf(ids, 3), std::nullopt);
  }
  for (const Ids& ids : {Ids{1, 2}, Ids{1, 2, 2}, Ids{2, 1, 2}}) {
    EXPECT_NE(FaultOf(ids, 3), std::nullopt);
  }
}

}  // namespace
}  // namespace firn::client
