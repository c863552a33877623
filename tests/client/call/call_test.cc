// Tests the failover of a call, with scripted outcomes and a virtual clock.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/call/call_rig.h"

namespace firn::client {
namespace {

TEST_F(CallTest, AsksAtMostThreeServersEachOnce) {
  Of({At(1), At(2), At(3), At(4), At(5)});
  const Begun call = Begin();
  std::set<std::string> asked;
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(InFlight(), 1u);
    asked.insert(End(kTimeout)->name);
  }
  EXPECT_EQ(asked.size(), 3u);
  EXPECT_TRUE(call.ended());
  EXPECT_EQ(call.report->attempts.size(), 3u);
}

TEST_F(CallTest, ReturnsTheFirstAnswer) {
  Of({At(1), At(2)});
  const Begun call = Begin();
  End(kTimeout);
  End({});
  ASSERT_TRUE(call.ended());
  EXPECT_EQ(**call.status, Status());
  ASSERT_EQ(call.report->attempts.size(), 2u);
  EXPECT_EQ(call.report->attempts[1].end, AttemptEnd::kAnswered);
}

TEST_F(CallTest, DoesNotCountServersThatCannotBeReached) {
  std::vector<KnownServer> servers;
  for (int i = 1; i <= 8; ++i) servers.push_back(At(i));
  Of(servers, /*fixed=*/true);
  const Begun call = Begin();
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(InFlight(), 1u) << i;
    End(kUnreachable);
  }
  EXPECT_TRUE(call.ended());
}

TEST_F(CallTest, RepeatsTheRequestOnceIfAnIdleConnectionWasClosed) {
  Of({At(1), At(2)});
  Outcome stale = Outcome::Of(AttemptEnd::kClosed, {});
  stale.was_pooled = true;
  Begin();
  const ServerPtr first = End(stale);
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_TRUE(sent().front().fresh);
  EXPECT_EQ(End(stale), first);
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_NE(End({}), first);
}

// The server may have granted the lease before it closed the connection.
TEST_F(CallTest, AsksNoOtherServerForALeaseAfterAClosedIdleConnection) {
  Outcome stale = Outcome::Of(AttemptEnd::kClosed, {});
  stale.was_pooled = true;
  for (const bool in_backoff : {false, true}) {
    Of({At(1), At(2)});
    const Begun call = Begin({.tag = "lease", .route = std::make_shared<Route>()});
    ASSERT_EQ(InFlight(), 1u);
    const ServerPtr first = sent().front().server;
    if (in_backoff) first->connect_at = Now() + Micros(20'000);
    EXPECT_EQ(End(stale), first);
    if (!in_backoff) End(kUnreachable);
    EXPECT_EQ(InFlight(), 0u) << in_backoff;
    EXPECT_TRUE(call.ended()) << in_backoff;
    EXPECT_EQ(first->in_flight, 0);
    first->connect_at = Micros(0);
  }
}

TEST_F(CallTest, FailsARequestToOneServerIfItIsUnreachable) {
  Of({At(1), At(2)});
  const Begun call =
      Begin({.tag = "lease", .route = std::make_shared<Route>(Route{.only = At(2).address})});
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_EQ(End(kUnreachable)->name, At(2).address);
  EXPECT_TRUE(call.ended());
}

TEST_F(CallTest, AsksOthersFirstWhileAServerIsInBackoff) {
  Of({At(1), At(2)}, /*fixed=*/true);
  const ServerPtr in_backoff = PickNumber(1);
  fleet_->GiveBack(*in_backoff);
  in_backoff->connect_at = Now() + Micros(20'000);
  const Begun call = Begin();
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_NE(End(kUnreachable), in_backoff);
  EXPECT_EQ(InFlight(), 0u);
  Pass(Milliseconds(19));
  EXPECT_EQ(InFlight(), 0u);
  Pass(Milliseconds(1));
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_EQ(sent().front().server, in_backoff);
  EXPECT_GE(fleet_->counters().connects_deferred, 1u);
  EXPECT_EQ(fleet_->counters().retries, 0u);
}

TEST_F(CallTest, ServersInBackoffUseNoRetryBudget) {
  Of({At(1), At(2), At(3)}, /*fixed=*/true);
  Begin();
  for (const int number : {1, 2, 3}) {
    PickNumber(number)->connect_at = Now() + Micros(20'000);
  }
  End(kTimeout);
  EXPECT_EQ(InFlight(), 0u);
  EXPECT_EQ(fleet_->counters().connects_deferred, 2u);
  Pass(Milliseconds(20));
  EXPECT_EQ(InFlight(), 1u);
  EXPECT_EQ(fleet_->counters().retries, 1u) << "one other server was asked";
}

TEST_F(CallTest, NamesServersThatAreInBackoffUntilTheDeadline) {
  Of({At(1)}, /*fixed=*/true);
  const ServerPtr in_backoff = PickNumber(1);
  fleet_->GiveBack(*in_backoff);
  const Begun call = Begin(Micros(0));
  in_backoff->connect_at = Now() + Micros(200'001);
  const Begun waiting = Begin();
  Pass(Milliseconds(199));
  EXPECT_FALSE(waiting.ended());
  Pass(Milliseconds(1));
  ASSERT_TRUE(waiting.ended());
  EXPECT_NE((*waiting.status)->message().find(At(1).address), std::string::npos);
  EXPECT_EQ(in_backoff->in_flight, 0);
}

TEST_F(CallTest, WaitsForServersUntilTheDeadline) {
  Fleet& fleet = Of({});
  const Begun ends = Begin();
  const Begun asks = Begin(Micros(400'000));
  Pass(Milliseconds(200));
  EXPECT_TRUE(ends.ended());
  EXPECT_FALSE(asks.ended());
  list_.servers = {At(1)};
  fleet.Apply(list_);
  asks.call->OnNews();
  Tick();
  EXPECT_EQ(InFlight(), 1u);
}

TEST_F(CallTest, WaitsForANewerListWhenAllServersAreLost) {
  Fleet& fleet = Of({At(1), At(2)});
  const Begun call = Begin();
  for (const Outcome& outcome : {kUnreachable, Refusal(Reason::kDraining)}) End(outcome);
  ASSERT_EQ(InFlight(), 0u);
  ASSERT_FALSE(call.ended());
  list_.servers.push_back(At(3));
  fleet.Apply(list_);
  call.call->OnNews();
  Tick();
  ASSERT_EQ(InFlight(), 1u);
  EXPECT_EQ(End(kUnreachable)->name, At(3).address) << "before those that were just lost";
  EXPECT_EQ(InFlight(), 0u);
  fleet.Apply(list_);
  call.call->OnNews();
  Tick();
  EXPECT_EQ(InFlight(), 1u) << "all of them once more";
}

TEST_F(CallTest, RetriesLostServersAfterTheTimeOfAnAttempt) {
  for (const Outcome& lost : {kTimeout, kUnreachable}) {
    Of({At(1), At(2)});
    const Begun call = Begin(Micros(800'000));
    for (int i = 0; i < 2; ++i) End(lost);
    EXPECT_EQ(InFlight(), 0u);
    Pass(Milliseconds(79));
    EXPECT_EQ(InFlight(), 0u);
    Pass(Milliseconds(1));
    EXPECT_EQ(InFlight(), 1u);
    End({});
  }
}

TEST_F(CallTest, RetriesAnUnreachableServerUntilTheDeadline) {
  Of({At(1)});
  const Begun call = Begin(Micros(60'000'000));
  size_t asked = 0;
  while (!call.ended()) {
    for (; InFlight() > 0; ++asked) End(kUnreachable);
    Pass(Milliseconds(80));
  }
  EXPECT_GE(Now(), call.call->deadline());
  EXPECT_GT(asked, Call::kConnectsMax);
}

TEST_F(CallTest, FailsAtOnceIfTheListCannotChange) {
  Of({At(1)}, /*fixed=*/true);
  const Begun call = Begin();
  End(kUnreachable);
  EXPECT_TRUE(call.ended());
}

TEST_F(CallTest, WaitsForNoNewerListIfAServerAnswered) {
  Of({At(1), At(2)});
  const Begun call = Begin();
  for (const Outcome& outcome : {kUnreachable, Refusal(Reason::kNotReady)}) End(outcome);
  EXPECT_TRUE(call.ended());
}

TEST_F(CallTest, FailsAtTheDeadlineAndReportsTheServerInProgress) {
  Of({At(1), At(2), At(3)});
  const Begun call = Begin();
  Pass(Milliseconds(150));
  End(kTimeout);
  Pass(Milliseconds(49));
  EXPECT_FALSE(call.ended());
  Pass(Milliseconds(1));
  ASSERT_TRUE(call.ended());
  EXPECT_EQ((*call.status)->code(), Code::kUnavailable);
  EXPECT_EQ(call.report->attempts.size(), 2u);
  const ServerPtr asked = End({});
  EXPECT_EQ(asked->in_flight, 0) << "the late answer is reported to the fleet";
}

TEST_F(CallTest, EndsWhenTheClientIsDestroyed) {
  Of({At(1)});
  const Begun call = Begin();
  host().stopping = true;
  jobs_.MarkReady(*call.call);
  Tick();
  ASSERT_TRUE(call.ended());
  EXPECT_EQ((*call.status)->code(), Code::kUnavailable);
  ASSERT_EQ(call.report->attempts.size(), 1u);
  EXPECT_EQ(call.report->attempts[0].end, AttemptEnd::kAbandoned);
}

TEST_F(CallTest, AnAnswerTakesPrecedenceOverAFailureInTheSameTurn) {
  Of({At(1), At(2), At(3)});
  const Begun call = Begin();
  const auto answered = sent().front();
  sent().pop_front();
  answered.call->OnOutcome(answered.attempt, kTimeout, /*last=*/false);
  Tick();
  ASSERT_EQ(InFlight(), 1u) << "another server is asked";
  const auto failed = sent().front();
  sent().clear();
  Report(failed, kTimeout);
  Report(answered, {});
  Tick();
  ASSERT_TRUE(call.ended());
  EXPECT_EQ(**call.status, Status());
  EXPECT_EQ(InFlight(), 0u) << "no third server is asked";
}

TEST_F(CallTest, AcceptsALateAnswer) {
  Of({At(1), At(2)});
  const Begun call = Begin();
  const auto late = sent().front();
  sent().pop_front();
  late.call->OnOutcome(late.attempt, kTimeout, /*last=*/false);
  Tick();
  ASSERT_EQ(InFlight(), 1u) << "another server is asked";
  late.call->settled = true;
  late.call->OnOutcome(late.attempt, {}, /*last=*/true);
  Tick();
  ASSERT_TRUE(call.ended());
  EXPECT_EQ(**call.status, Status());
  ASSERT_EQ(call.report->attempts.size(), 3u);
  EXPECT_EQ(call.report->attempts[2].end, AttemptEnd::kAbandoned);
}

}  // namespace
}  // namespace firn::client
