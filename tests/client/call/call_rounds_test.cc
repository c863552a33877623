// Tests the rounds and the retry budget of calls, with scripted outcomes and a virtual clock.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/call/call_rig.h"

namespace firn::client {
namespace {

TEST_F(CallTest, StopsRetryingWhenTheBudgetIsUsedUp) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  const int calls = 2'000;
  uint64_t attempts = 0;
  for (int i = 0; i < calls; ++i) {
    const Begun call = Begin();
    for (; InFlight() > 0; ++attempts) End(kTimeout);
    if (!call.ended()) Pass(Milliseconds(0));
    call.call->OnNews();
  }
  EXPECT_LE(attempts, calls * (1 + RetryBudget::kPerCall) + RetryBudget::kMost);
  EXPECT_GE(attempts, calls * (1 + RetryBudget::kPerCall));
  EXPECT_EQ(fleet.counters().attempts, attempts);
  EXPECT_GT(fleet.counters().retries_denied, 0u);
}

// Calls that were in flight on the same connection when the first of them timed out.
class MovedCallsTest : public CallTest {
 protected:
  // Ends this number of calls at server 1 by a timeout. Returns the number of retried calls.
  // `another_answers`: whether server 2 answers in the meantime.
  int Moved(int calls, bool another_answers) {
    sent().clear();
    std::vector<Begun> held;
    for (int i = 0; i < calls; ++i) held.push_back(Begin());
    clock_.Advance(Milliseconds(80));
    if (another_answers) FleetTest::End(PickNumber(2), {});
    Outcome shared = kTimeout;
    shared.shared_blame = true;
    for (int i = 0; i < calls; ++i) End(shared);
    const auto moved = static_cast<int>(InFlight());
    for (const auto& one : sent()) fleet_->GiveBack(*one.server);
    return moved;
  }

  // Returns a fleet that uses server 2 only after server 1.
  Fleet& OneAndASpare() {
    KnownServer spare = At(2);
    spare.disabled = true;
    return Of({At(1), spare});
  }

  static constexpr int kCalls = 1'000;
};

TEST_F(MovedCallsTest, RetryWithoutTheBudgetWhileAnotherServerAnswers) {
  Fleet& fleet = OneAndASpare();
  EXPECT_EQ(Moved(kCalls, true), kCalls);
  EXPECT_EQ(fleet.counters().free_retries, static_cast<uint64_t>(kCalls));
  EXPECT_EQ(fleet.counters().retries, 0u);
}

TEST_F(MovedCallsTest, UseTheBudgetIfNoServerAnswers) {
  Fleet& fleet = OneAndASpare();
  EXPECT_LE(Moved(kCalls, false), RetryBudget::kMost);
  EXPECT_EQ(fleet.counters().free_retries, 0u);
  EXPECT_GT(fleet.counters().retries_denied, 0u);
}

TEST_F(MovedCallsTest, UseTheBudgetWhenItHappensAgainSoon) {
  options_.attempt_limit = Milliseconds(80);
  Fleet& fleet = OneAndASpare();
  EXPECT_EQ(Moved(kCalls, true), kCalls);
  clock_.Advance(Milliseconds(100));
  EXPECT_LE(Moved(kCalls, true), RetryBudget::kMost);
  EXPECT_EQ(fleet.counters().free_retries, static_cast<uint64_t>(kCalls));
  clock_.Advance(Milliseconds(800));
  EXPECT_EQ(Moved(kCalls, true), kCalls);
}

TEST_F(CallTest, StartsANewRoundWhenAllServersWereOverloaded) {
  Of({At(1), At(2)});
  const Begun call = Begin();
  for (int i = 0; i < 2; ++i) End(Refusal(Reason::kOverloaded, Milliseconds(30 + 10 * i)));
  ASSERT_EQ(InFlight(), 0u);
  call.call->OnNews();
  Pass(Milliseconds(29));
  EXPECT_EQ(InFlight(), 0u) << "not for news, and not before the shortest advised time";
  Pass(Milliseconds(16));
  EXPECT_EQ(InFlight(), 1u);
}

TEST_F(CallTest, SpreadsTheRetriesOfOverloadedCalls) {
  Of({At(1)});
  for (const int advice_ms : {30, 199}) {
    std::vector<Begun> calls;
    for (int i = 0; i < 100; ++i) {
      calls.push_back(Begin());
      End(Refusal(Reason::kOverloaded, Milliseconds(advice_ms)));
    }
    std::set<Micros> moments;
    const Micros began = Now();
    while (jobs_.first_due() < Micros::max()) {
      const Micros due = jobs_.first_due();
      EXPECT_GE(due, began + Milliseconds(advice_ms)) << "never sooner than advised";
      moments.insert(due);
      jobs_.Tick(due);
      for (; !sent().empty(); sent().pop_front()) {
        EXPECT_LT(due, sent().front().call->deadline()) << "nor too late for it";
        fleet_->Done(*sent().front().server, "order", {}, Micros(1), due);
        sent().front().call->settled = true;
        sent().front().call->OnOutcome(sent().front().attempt, {}, true);
      }
    }
    EXPECT_GT(moments.size(), 50u) << advice_ms;
    clock_.Advance(Milliseconds(1'000));
    Tick();
  }
}

TEST_F(CallTest, StartsANewRoundWhenItHasTriedTheMaximumOfServers) {
  Of({At(1), At(2), At(3), At(4), At(5)});
  Begin();
  for (int round = 0; round < 3; ++round) {
    std::set<std::string> asked;
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(InFlight(), 1u) << "round " << round << ", " << i;
      asked.insert(End(Refusal(Reason::kOverloaded, Milliseconds(40)))->name);
    }
    EXPECT_EQ(asked.size(), 3u);
    ASSERT_EQ(InFlight(), 0u);
    Pass(Milliseconds(60));
  }
}

TEST_F(CallTest, StartsANewRoundWhenAllReachableServersWereOverloaded) {
  Of({At(1), At(2), At(3)});
  const Begun call = Begin();
  for (const Outcome& outcome :
       {kUnreachable, Refusal(Reason::kOverloaded), Refusal(Reason::kOverloaded)}) {
    End(outcome);
  }
  EXPECT_FALSE(call.ended());
  Pass(Milliseconds(15));
  EXPECT_EQ(InFlight(), 1u);
}

TEST_F(CallTest, StartsNoNewRoundIfAServerTimedOut) {
  Of({At(1), At(2), At(3)});
  const Begun call = Begin();
  for (const Outcome& outcome :
       {kTimeout, Refusal(Reason::kOverloaded), Refusal(Reason::kOverloaded)}) {
    End(outcome);
  }
  EXPECT_TRUE(call.ended());
}

TEST_F(CallTest, FailsWhenOverloadLastsBeyondTheDeadlineOrTooManyRounds) {
  Of({At(1)});
  const Begun late = Begin();
  End(Refusal(Reason::kOverloaded, Milliseconds(200)));
  EXPECT_TRUE(late.ended());

  const Begun patient = Begin(Micros(3'600'000'000));
  int asked = 0;
  while (!patient.ended()) {
    for (; InFlight() > 0; ++asked) End(Refusal(Reason::kOverloaded, Milliseconds(500)));
    Pass(Milliseconds(500));
  }
  EXPECT_EQ(asked, Call::kRoundsMax);
}

}  // namespace
}  // namespace firn::client
