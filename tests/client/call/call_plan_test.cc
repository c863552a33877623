#include "client/call/call_plan.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

class CallPlanTest : public FleetTest {
 protected:
  using Kind = CallPlan::Step::Kind;

  CallPlan Plan(CallPlan::Limits limits = {}) {
    return {*fleet_, limits, "order", Now() + Micros(200'000), nullptr};
  }
};

TEST_F(CallPlanTest, AsksAtMostThreeServersEachOnce) {
  Of({At(1), At(2), At(3), At(4), At(5)});
  CallPlan plan = Plan();
  std::set<std::string> asked;
  for (int i = 0; i < 3; ++i) {
    const CallPlan::Step step = plan.Next(Now());
    ASSERT_EQ(step.kind, Kind::kTry);
    asked.insert(step.server->name);
    EXPECT_FALSE(plan.Ended(step, kTimeout, Now(), Now()));
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, DoesNotCountServersThatCannotBeReached) {
  std::vector<KnownServer> servers;
  for (int i = 1; i <= 8; ++i) servers.push_back(At(i));
  Of(servers, /*fixed=*/true);
  CallPlan plan = Plan();
  for (int i = 0; i < 8; ++i) {
    const CallPlan::Step step = plan.Next(Now());
    ASSERT_EQ(step.kind, Kind::kTry) << i;
    plan.Ended(step, kUnreachable, Now(), Now());
  }
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, AsksOthersFirstWhereAConnectionHasJustComeToNothing) {
  Of({At(1), At(2)}, /*fixed=*/true);
  CallPlan plan = Plan();
  const CallPlan::Step put_off = plan.Next(Now());
  plan.PutOff(put_off, Now() + Micros(20'000));
  const CallPlan::Step other = plan.Next(Now());
  ASSERT_EQ(other.kind, Kind::kTry);
  EXPECT_NE(other.server, put_off.server);
  plan.Ended(other, kUnreachable, Now(), Now());
  const CallPlan::Step wait = plan.Next(Now());
  ASSERT_EQ(wait.kind, Kind::kWait);
  EXPECT_EQ(wait.until, Now() + Micros(20'000));
  clock_.Advance(Milliseconds(20));
  const CallPlan::Step again = plan.Next(Now());
  ASSERT_EQ(again.kind, Kind::kTry);
  EXPECT_EQ(again.server, put_off.server);
  EXPECT_EQ(fleet_->counters().put_off, 1u);
  EXPECT_EQ(fleet_->counters().retries, 0u);
}

TEST_F(CallPlanTest, NamesThoseThatWerePutOffUntilTheDeadline) {
  Of({At(1)}, /*fixed=*/true);
  CallPlan plan = Plan();
  const CallPlan::Step put_off = plan.Next(Now());
  plan.PutOff(put_off, plan.deadline() + Micros(1));
  EXPECT_EQ(plan.Next(Now()).until, plan.deadline());
  clock_.Advance(Milliseconds(200));
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
  EXPECT_NE(plan.Failure().message().find(At(1).address), std::string::npos);
  EXPECT_EQ(put_off.server->in_flight, 0);
}

TEST_F(CallPlanTest, WaitsForServersUntilTheDeadline) {
  Fleet& fleet = Of({});
  CallPlan plan = Plan();
  const CallPlan::Step step = plan.Next(Now());
  EXPECT_EQ(step.kind, Kind::kWait);
  EXPECT_TRUE(step.for_news);
  EXPECT_EQ(step.until, plan.deadline());
  list_.servers = {At(1)};
  fleet.Apply(list_);
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kTry);
  clock_.Advance(Milliseconds(200));
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, WaitsForANewerListWhenAllThatItKnowsAreLost) {
  Fleet& fleet = Of({At(1), At(2)});
  CallPlan plan = Plan();
  for (const Outcome& outcome : {kUnreachable, Refusal(Reason::kDraining)}) {
    plan.Ended(plan.Next(Now()), outcome, Now(), Now());
  }
  const CallPlan::Step wait = plan.Next(Now());
  ASSERT_EQ(wait.kind, Kind::kWait);
  EXPECT_TRUE(wait.for_news);
  list_.servers.push_back(At(3));
  fleet.Apply(list_);
  const CallPlan::Step step = plan.Next(Now());
  ASSERT_EQ(step.kind, Kind::kTry);
  EXPECT_EQ(step.server->name, At(3).address) << "before those that were lost a moment ago";
  plan.Ended(step, kUnreachable, Now(), Now());
  ASSERT_EQ(plan.Next(Now()).kind, Kind::kWait);
  fleet.Apply(list_);
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kTry) << "all of them once more";
}

TEST_F(CallPlanTest, AsksLostServersOnceMoreWhenThereIsTimeAndNobodyElse) {
  for (const Outcome& lost : {kTimeout, kUnreachable}) {
    Of({At(1), At(2)});
    CallPlan plan(*fleet_, {}, "order", Now() + Micros(800'000), nullptr);
    for (int i = 0; i < 2; ++i) plan.Ended(plan.Next(Now()), lost, Now(), Now());
    const CallPlan::Step wait = plan.Next(Now());
    ASSERT_EQ(wait.kind, Kind::kWait);
    EXPECT_TRUE(wait.for_news);
    EXPECT_EQ(wait.until, Now() + Micros(80'000));
    clock_.Advance(Milliseconds(80));
    EXPECT_EQ(plan.Next(Now()).kind, Kind::kTry);
  }
}

TEST_F(CallPlanTest, LooksForAServerOutOfReachUntilTheDeadline) {
  Of({At(1)});
  CallPlan plan(*fleet_, {}, "order", Now() + Micros(60'000'000), nullptr);
  size_t asked = 0;
  for (CallPlan::Step step; (step = plan.Next(Now())).kind != Kind::kEnd;) {
    if (step.kind == Kind::kTry) {
      plan.Ended(step, kUnreachable, Now(), Now());
      ++asked;
    }
    clock_.Advance(Milliseconds(80));
  }
  EXPECT_GE(Now(), plan.deadline());
  EXPECT_GT(asked, CallPlan::kConnectsMax);
}

TEST_F(CallPlanTest, WaitsForNoOtherListWhereNoneCanCome) {
  Of({At(1)}, /*fixed=*/true);
  CallPlan plan = Plan();
  plan.Ended(plan.Next(Now()), kUnreachable, Now(), Now());
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, WaitsForNoNewerListWhenAServerAnswered) {
  Of({At(1), At(2)});
  CallPlan plan = Plan();
  for (const Outcome& outcome : {kUnreachable, Refusal(Reason::kNotReady)}) {
    plan.Ended(plan.Next(Now()), outcome, Now(), Now());
  }
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, GivesAnAttemptNoMoreTimeThanTheCallHas) {
  Of({At(1), At(2), At(3)});
  CallPlan plan = Plan();
  const Micros began = Now();
  CallPlan::Step step = plan.Next(Now());
  EXPECT_EQ(step.until, began + Micros(80'000));
  clock_.Advance(Milliseconds(150));
  plan.Ended(step, kTimeout, began, Now());
  step = plan.Next(Now());
  EXPECT_EQ(step.until, plan.deadline());
}

TEST_F(CallPlanTest, StopsRetryingWhenTheBudgetIsUsedUp) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  const int calls = 2'000;
  uint64_t attempts = 0;
  for (int i = 0; i < calls; ++i) {
    CallPlan plan = Plan();
    for (CallPlan::Step step; (step = plan.Next(Now())).kind == Kind::kTry; ++attempts) {
      plan.Ended(step, kTimeout, Now(), Now());
    }
    EXPECT_EQ(plan.Failure().code(), Code::kUnavailable);
  }
  EXPECT_LE(attempts, calls * (1 + RetryBudget::kPerCall) + RetryBudget::kMost);
  EXPECT_GE(attempts, calls * (1 + RetryBudget::kPerCall));
  EXPECT_EQ(fleet.counters().attempts, attempts);
  EXPECT_GT(fleet.counters().retries_denied, 0u);
}

// Calls that were all under way on one connection when the first of them timed out.
class MovedCallsTest : public CallPlanTest {
 protected:
  // Ends `calls` calls at server 1 in this way; server 2 answers meanwhile, or not.
  int Moved(int calls, bool another_answers) {
    std::vector<std::pair<CallPlan, CallPlan::Step>> held;
    const Micros began = Now();
    for (int i = 0; i < calls; ++i) {
      CallPlan plan = Plan();
      const CallPlan::Step step = plan.Next(Now());
      held.emplace_back(std::move(plan), step);
    }
    clock_.Advance(Milliseconds(80));
    if (another_answers) End(PickNumber(2), {});
    Outcome shared = kTimeout;
    shared.shared_blame = true;
    int went_on = 0;
    for (auto& [plan, step] : held) {
      plan.Ended(step, shared, began, Now());
      went_on += plan.Next(Now()).kind == Kind::kTry ? 1 : 0;
    }
    return went_on;
  }

  // Server 2 is asked only when server 1 has been.
  Fleet& OneAndASpare() {
    KnownServer spare = At(2);
    spare.disabled = true;
    return Of({At(1), spare});
  }

  static constexpr int kCalls = 1'000;
};

TEST_F(MovedCallsTest, GoOnFreeOfTheBudgetWhileAnotherServerAnswers) {
  Fleet& fleet = OneAndASpare();
  EXPECT_EQ(Moved(kCalls, true), kCalls);
  EXPECT_EQ(fleet.counters().moves, static_cast<uint64_t>(kCalls));
  EXPECT_EQ(fleet.counters().retries, 0u);
}

TEST_F(MovedCallsTest, ArePaidForWhereNobodyAnswers) {
  Fleet& fleet = OneAndASpare();
  EXPECT_LE(Moved(kCalls, false), RetryBudget::kMost);
  EXPECT_EQ(fleet.counters().moves, 0u);
  EXPECT_GT(fleet.counters().retries_denied, 0u);
}

TEST_F(MovedCallsTest, ArePaidForWhenItHappensAgainSoon) {
  options_.attempt_limit = Milliseconds(80);
  Fleet& fleet = OneAndASpare();
  EXPECT_EQ(Moved(kCalls, true), kCalls);
  clock_.Advance(Milliseconds(100));
  EXPECT_LE(Moved(kCalls, true), RetryBudget::kMost);
  EXPECT_EQ(fleet.counters().moves, static_cast<uint64_t>(kCalls));
  clock_.Advance(Milliseconds(800));
  EXPECT_EQ(Moved(kCalls, true), kCalls);
}

TEST_F(CallPlanTest, BeginsANewRoundAfterAllWereOverloaded) {
  Of({At(1), At(2)});
  CallPlan plan = Plan();
  for (int i = 0; i < 2; ++i) {
    const CallPlan::Step step = plan.Next(Now());
    ASSERT_EQ(step.kind, Kind::kTry);
    plan.Ended(step, Refusal(Reason::kOverloaded, Milliseconds(30 + 10 * i)), Now(), Now());
  }
  const CallPlan::Step wait = plan.Next(Now());
  ASSERT_EQ(wait.kind, Kind::kWait);
  EXPECT_FALSE(wait.for_news);
  EXPECT_GE(wait.until, Now() + Micros(30'000));
  EXPECT_LE(wait.until, Now() + Micros(45'000));
  clock_.Advance(Milliseconds(45));
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kTry);
}

TEST_F(CallPlanTest, CallsThatWereToldToComeBackDoNotComeBackTogether) {
  Of({At(1)});
  for (const Milliseconds advice : {Milliseconds(30), Milliseconds(199)}) {
    std::set<Micros> moments;
    for (int i = 0; i < 100; ++i) {
      CallPlan plan = Plan();
      plan.Ended(plan.Next(Now()), Refusal(Reason::kOverloaded, advice), Now(), Now());
      const CallPlan::Step wait = plan.Next(Now());
      ASSERT_EQ(wait.kind, Kind::kWait);
      EXPECT_GE(wait.until, Now() + advice) << "never sooner than told";
      EXPECT_LT(wait.until, plan.deadline()) << "nor too late for it";
      moments.insert(wait.until);
    }
    EXPECT_GT(moments.size(), 50u) << advice.count();
  }
}

TEST_F(CallPlanTest, WaitsForOverloadedServersAlsoWhenItMayAskNoMoreOfThem) {
  Of({At(1), At(2), At(3), At(4), At(5)});
  CallPlan plan = Plan({.attempts_max = 3});
  for (int round = 0; round < 3; ++round) {
    std::set<std::string> asked;
    for (int i = 0; i < 3; ++i) {
      const CallPlan::Step step = plan.Next(Now());
      ASSERT_EQ(step.kind, Kind::kTry) << "round " << round << ", " << i;
      asked.insert(step.server->name);
      plan.Ended(step, Refusal(Reason::kOverloaded, Milliseconds(50)), Now(), Now());
    }
    EXPECT_EQ(asked.size(), 3u);
    const CallPlan::Step wait = plan.Next(Now());
    ASSERT_EQ(wait.kind, Kind::kWait);
    EXPECT_GE(wait.until, Now() + Micros(50'000));
    clock_.Advance(Milliseconds(60));
  }
}

TEST_F(CallPlanTest, WaitsForThoseThatCouldBeReachedWhenTheyAreOverloaded) {
  Of({At(1), At(2), At(3)});
  CallPlan plan = Plan();
  for (const Outcome& outcome :
       {kUnreachable, Refusal(Reason::kOverloaded), Refusal(Reason::kOverloaded)}) {
    plan.Ended(plan.Next(Now()), outcome, Now(), Now());
  }
  const CallPlan::Step wait = plan.Next(Now());
  EXPECT_EQ(wait.kind, Kind::kWait);
  EXPECT_FALSE(wait.for_news);
}

TEST_F(CallPlanTest, DoesNotWaitWhereOnlySomeAreOverloaded) {
  Of({At(1), At(2), At(3)});
  CallPlan plan = Plan();
  for (const Outcome& outcome :
       {kTimeout, Refusal(Reason::kOverloaded), Refusal(Reason::kOverloaded)}) {
    plan.Ended(plan.Next(Now()), outcome, Now(), Now());
  }
  EXPECT_EQ(plan.Next(Now()).kind, Kind::kEnd);
}

TEST_F(CallPlanTest, EndsWhenOverloadLastsBeyondTheDeadlineOrTooManyRounds) {
  Of({At(1)});
  CallPlan late = Plan();
  late.Ended(late.Next(Now()), Refusal(Reason::kOverloaded, Milliseconds(200)), Now(), Now());
  EXPECT_EQ(late.Next(Now()).kind, Kind::kEnd);

  CallPlan patient(*fleet_, {}, "order", Now() + Micros(3'600'000'000), nullptr);
  int asked = 0;
  for (CallPlan::Step step; (step = patient.Next(Now())).kind != Kind::kEnd;) {
    if (step.kind == Kind::kTry) {
      patient.Ended(step, Refusal(Reason::kOverloaded, Milliseconds(500)), Now(), Now());
      ++asked;
    }
    clock_.Advance(Milliseconds(500));
  }
  EXPECT_EQ(asked, CallPlan::kRoundsMax);
}

TEST_F(CallPlanTest, DoesNotBlameAServerThatWasGivenHardlyAnyTime) {
  Of({At(1), At(2), At(3)});
  for (int i = 0; i < 30; ++i) {
    CallPlan plan(*fleet_, {}, "order", Now() + Micros(5'000), nullptr);
    plan.Ended(plan.Next(Now()), kTimeout, Now(), Now() + Micros(5'000));
  }
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(Fitness(i), ServerFitness::kFit);
}

}  // namespace
}  // namespace firn::client
