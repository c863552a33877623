#include "client/fleet/fleet.h"

#include <map>

#include <gtest/gtest.h>

#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

TEST_F(FleetTest, EjectsAServerAfterThreeFailures) {
  Of({At(1), At(2), At(3)});
  Happen(2, kTimeout, 3);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
  EXPECT_FALSE(Names(Asked(), 2));
}

TEST_F(FleetTest, CountsAnUnacceptedConnectionTwice) {
  Of({At(1), At(2), At(3)});
  Happen(2, Outcome::Of(AttemptEnd::kConnectTimeout, {}), 2);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
}

TEST_F(FleetTest, EjectsAtMostHalfOfTheServers) {
  Of({At(1), At(2), At(3), At(4), At(5)});
  for (int i = 0; i < 200; ++i) End(Pick(), kUnreachable);
  int ejected = 0;
  for (int i = 1; i <= 5; ++i) ejected += HealthOf(i) == ServerHealth::kEjected ? 1 : 0;
  EXPECT_EQ(ejected, 2);
}

TEST_F(FleetTest, NeverEjectsTheOnlyServer) {
  Of({At(1)});
  for (int i = 0; i < 50; ++i) End(Pick(), kTimeout);
  EXPECT_EQ(HealthOf(1), ServerHealth::kFailing);
  EXPECT_NE(Pick(), nullptr);
}

TEST_F(FleetTest, ProbesAnEjectedServerAndRestoresIt) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, kTimeout, 3);
  EXPECT_TRUE(fleet.TakeProbes(Now()).empty());
  clock_.Advance(Milliseconds(1'000));
  const auto probes = fleet.TakeProbes(Now());
  ASSERT_EQ(probes.size(), 1u);
  EXPECT_EQ(probes[0]->name, At(2).address);
  EXPECT_TRUE(fleet.TakeProbes(Now()).empty());
  fleet.Probed(*probes[0], kUnreachable, {}, Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
  clock_.Advance(Milliseconds(2'000));
  ASSERT_EQ(fleet.TakeProbes(Now()).size(), 1u);
  fleet.Probed(*probes[0], {}, {}, Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  EXPECT_TRUE(Names(Asked(), 2));
}

TEST_F(FleetTest, UsesEjectedServersLast) {
  Of({At(1), At(2)});
  Happen(2, kTimeout, 3);
  const ServerPtr first = Pick();
  const ServerPtr second = Pick("order", {first});
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->name, At(2).address);
  EXPECT_EQ(Pick("order", {first, second}), nullptr);
}

TEST_F(FleetTest, AnAnswerEndsAnEjection) {
  Of({At(1), At(2)});
  Happen(2, kTimeout, 3);
  End(Pick("order", {Pick()}), {});
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
}

TEST_F(FleetTest, DoesNotCountAClosedIdleConnectionAsAFailure) {
  Of({At(1), At(2), At(3)});
  Outcome stale = Outcome::Of(AttemptEnd::kClosed, {});
  stale.was_pooled = true;
  Happen(2, stale, 10);
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  stale.was_pooled = false;
  Happen(2, stale, 3);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
}

TEST_F(FleetTest, AvoidsAServerForTheAdvisedTimePlusUpToHalf) {
  Of({At(1), At(2), At(3)});
  Happen(2, Refusal(Reason::kNotReady, Milliseconds(500)));
  EXPECT_FALSE(Names(Asked(), 2));
  clock_.Advance(Milliseconds(499));
  EXPECT_FALSE(Names(Asked(), 2));
  clock_.Advance(Milliseconds(251));
  EXPECT_TRUE(Names(Asked(), 2));
}

TEST_F(FleetTest, UsesServersWithoutAMachineIdForTagsThatNeedNone) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  ServerFacts facts;
  facts.layout = "firn";
  facts.own_numbers = {"invoice"};
  EXPECT_TRUE(fleet.Admit({}, facts).answered());
  Happen(2, Refusal(Reason::kClock, Milliseconds(500)));
  EXPECT_FALSE(Names(Asked(60, "order"), 2));
  EXPECT_TRUE(Names(Asked(60, "invoice"), 2));
}

TEST_F(FleetTest, AvoidsAServerWithoutItsStoreForThatTagOnly) {
  Of({At(1), At(2), At(3)});
  Happen(2, Refusal(Reason::kStoreDown, Milliseconds(500)), 1, "invoice");
  EXPECT_FALSE(Names(Asked(60, "invoice"), 2));
  EXPECT_TRUE(Names(Asked(60, "order"), 2));
  clock_.Advance(Milliseconds(750));
  EXPECT_TRUE(Names(Asked(60, "invoice"), 2));
}

TEST_F(FleetTest, ANewListEndsQuarantineAndDraining) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(1, kBroken);
  Happen(2, Refusal(Reason::kDraining));
  EXPECT_EQ(HealthOf(1), ServerHealth::kQuarantined);
  EXPECT_EQ(HealthOf(2), ServerHealth::kDraining);
  ConfirmDraining(2);
  EXPECT_EQ(Asked().size(), 1u);
  list_.servers.push_back(At(4));
  fleet.Apply(list_);
  EXPECT_EQ(Asked().size(), 4u);
}

TEST_F(FleetTest, EndsDrainingWhenTheServerIssuesIds) {
  Of({At(1), At(2)});
  Happen(1, Refusal(Reason::kDraining));
  ConfirmDraining(1);
  EXPECT_FALSE(Names(Asked(), 1));
  End(PickNumber(1), {});
  EXPECT_EQ(HealthOf(1), ServerHealth::kHealthy);
  EXPECT_TRUE(Names(Asked(60, "order"), 1));
}

TEST_F(FleetTest, KeepsDrainingWhenTheServerIssuesNoIds) {
  Of({At(1), At(2)});
  Happen(1, Refusal(Reason::kDraining));
  ConfirmDraining(1);
  End(PickNumber(1), Refusal(Reason::kUnknownTag));
  Outcome list;
  list.without_ids = true;
  End(PickNumber(1), list, "servers()");
  EXPECT_EQ(HealthOf(1), ServerHealth::kDraining);
}

TEST_F(FleetTest, ReopensOnlyTheTagWhoseCallWasAnswered) {
  Fleet& fleet = Of({At(1), At(2)});
  Happen(1, Refusal(Reason::kDraining), 1, "invoice");
  End(PickNumber(1), Refusal(Reason::kDraining), "order");
  fleet.Probed(*fleet.TakeProbes(Now()).at(0), {}, ServerFacts(), Now());
  EXPECT_FALSE(Names(Asked(60, "invoice"), 1));
  EXPECT_FALSE(Names(Asked(60, "order"), 1));
  End(PickNumber(1), {}, "order");
  EXPECT_FALSE(Names(Asked(60, "invoice"), 1));
  EXPECT_TRUE(Names(Asked(60, "order"), 1));
}

TEST_F(FleetTest, ProbesQuarantinedAndDrainingServersAgain) {
  for (const bool fixed : {true, false}) {
    Fleet& fleet = Of({At(1), At(2), At(3)}, fixed);
    Happen(1, kBroken);
    Happen(2, Refusal(Reason::kDraining));
    ConfirmDraining(2);
    EXPECT_TRUE(fleet.TakeProbes(Now()).empty());
    clock_.Advance(Milliseconds(30'000));
    const auto probes = fleet.TakeProbes(Now());
    ASSERT_EQ(probes.size(), 2u);
    fleet.Probed(*probes[0], kBroken, {}, Now());
    fleet.Probed(*probes[1], {}, ServerFacts(), Now());
    EXPECT_EQ(HealthOf(1), ServerHealth::kQuarantined);
    EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  }
}

TEST_F(FleetTest, AvoidsAServerForOneTagIfItIsNotDraining) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, Refusal(Reason::kDraining), 1, "invoice");
  EXPECT_FALSE(Names(Asked(60, "order"), 2)) << "until its status is known";
  const auto probes = fleet.TakeProbes(Now());
  ASSERT_EQ(probes.size(), 1u);
  EXPECT_EQ(probes[0]->name, At(2).address);
  fleet.Probed(*probes[0], {}, ServerFacts(), Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  EXPECT_TRUE(Names(Asked(60, "order"), 2));
  EXPECT_FALSE(Names(Asked(60, "invoice"), 2));
  EXPECT_TRUE(fleet.TakeProbes(Now()).empty()) << "it was asked once";
  list_.servers.push_back(At(4));
  fleet.Apply(list_);
  EXPECT_TRUE(Names(Asked(60, "invoice"), 2)) << "the list has changed";
}

TEST_F(FleetTest, UsesAnAvoidedTagAgainAfterAWhile) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, Refusal(Reason::kDraining), 1, "invoice");
  fleet.Probed(*fleet.TakeProbes(Now()).at(0), {}, ServerFacts(), Now());
  clock_.Advance(Milliseconds(29'999));
  EXPECT_FALSE(Names(Asked(60, "invoice"), 2));
  clock_.Advance(Milliseconds(15'001));
  EXPECT_TRUE(Names(Asked(60, "invoice"), 2));
}

TEST_F(FleetTest, NeverUsesAQuarantinedServerWhileOthersAreHealthy) {
  Of({At(1), At(2)});
  Happen(1, kBroken);
  EXPECT_EQ(Pick("order", {Pick()}), nullptr);
}

TEST_F(FleetTest, UsesDisabledAndThenDrainingServersLast) {
  KnownServer disabled = At(1), weightless = At(2), draining = At(3), unready = At(4);
  disabled.disabled = true;
  weightless.weight = 0;
  draining.phase = ServerPhase::kDraining;
  unready.phase = ServerPhase::kNotReady;
  Of({disabled, weightless, draining, unready, At(5)});
  std::vector<ServerPtr> tried;
  std::vector<std::string> order;
  for (ServerPtr server; (server = Pick("order", tried)) != nullptr;) {
    tried.push_back(server);
    order.push_back(server->name);
  }
  ASSERT_EQ(order.size(), 5u);
  EXPECT_EQ(order[0], At(5).address);
  EXPECT_EQ(order[1], At(4).address);
  EXPECT_EQ(order[4], At(3).address);
}

TEST_F(FleetTest, PrefersItsOwnRackWhileItHasAHealthyServer) {
  options_.rack = 1;
  Of({At(1, 0), At(2, 1), At(3, 1)});
  EXPECT_FALSE(Names(Asked(), 1));
  Happen(2, Refusal(Reason::kNotReady, Milliseconds(5'000)));
  Happen(3, Refusal(Reason::kNotReady, Milliseconds(5'000)));
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{At(1).address, 60}}));
}

TEST_F(FleetTest, WarmsUpAServerFromItsFirstListing) {
  Fleet& fleet = Of({At(1)});
  list_.servers.push_back(At(2));
  fleet.Apply(list_);
  EXPECT_NEAR(Asked(11'000)[At(2).address], 1'000, 100);
  clock_.Advance(Milliseconds(5'000));
  fleet.Apply(list_);
  EXPECT_NEAR(Asked(15'000)[At(2).address], 5'000, 200);
  clock_.Advance(Milliseconds(5'000));
  EXPECT_NEAR(Asked(10'000)[At(2).address], 5'000, 200);
}

TEST_F(FleetTest, KeepsTheStateOfAServerThatStaysListed) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, kTimeout, 3);
  list_.servers[0].weight = 50;
  fleet.Apply(list_);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
  list_.servers.erase(list_.servers.begin() + 1);
  fleet.Apply(list_);
  EXPECT_EQ(fleet.View().servers.size(), 2u);
}

TEST_F(FleetTest, DiscardsTheStateOfARestartedServer) {
  KnownServer again = At(2);
  again.incarnation = "first";
  Fleet& fleet = Of({At(1), again});
  Happen(2, kTimeout, 3);
  fleet.Apply(list_);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected) << "the same process";
  list_.servers[1].incarnation = "second";
  fleet.Apply(list_);
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  EXPECT_EQ(fleet.View().servers[1].latency, Micros(0));
  EXPECT_NEAR(Asked(11'000)[At(2).address], 1'000, 100) << "it warms up";
}

TEST_F(FleetTest, TreatsAServerOfUnknownIncarnationAsTheSame) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, kTimeout, 3);
  list_.servers[1].incarnation = "first";
  fleet.Apply(list_);
  EXPECT_EQ(HealthOf(2), ServerHealth::kEjected);
}

TEST_F(FleetTest, AnEjectionsProbeDoesNotEndAQuarantine) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, kTimeout, 3);
  clock_.Advance(Milliseconds(1'000));
  const auto probes = fleet.TakeProbes(Now());
  ASSERT_EQ(probes.size(), 1u);
  End(PickNumber(2), kBroken);
  EXPECT_EQ(HealthOf(2), ServerHealth::kQuarantined);
  fleet.Probed(*probes[0], {}, ServerFacts(), Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kQuarantined);
}

TEST_F(FleetTest, AnEarlierProbeDoesNotEndAQuarantine) {
  Fleet& fleet = Of({At(1), At(2), At(3)}, /*fixed=*/true);
  Happen(2, kBroken);
  clock_.Advance(Milliseconds(30'000));
  const ServerPtr late = fleet.TakeProbes(Now()).at(0);
  list_.fixed = true;
  fleet.Apply(list_);
  End(PickNumber(2), kBroken);
  fleet.Probed(*late, {}, ServerFacts(), Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kQuarantined);
}

TEST_F(FleetTest, ReportsWhyNoServerCanBeUsed) {
  Fleet& fleet = Of({});
  EXPECT_EQ(fleet.ReportNoServer(), "no provider: no server is known");
  list_.servers = {At(1)};
  fleet.Apply(list_);
  End(Pick(), Outcome::Of(AttemptEnd::kWrongService, "another one's"));
  EXPECT_NE(fleet.ReportNoServer().find("another one's"), std::string::npos);
}

}  // namespace
}  // namespace firn::client
