// Tests servers that calls avoid: their maximum number, and their recovery.

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

constexpr Milliseconds kAtMost{600'000};
const Outcome kStrange = Outcome::Of(AttemptEnd::kWrongService, "it is another cluster's");

class ComebackTest : public FleetTest {
 protected:
  // Returns the servers that must be probed now.
  std::vector<ServerPtr> Probes() { return fleet_->TakeProbes(Now()); }
  // Returns the time until the next probe, rounded up to seconds. Then lets the probe fail.
  Milliseconds UntilNextProbe() {
    for (Milliseconds waited{0}; waited < kAtMost; waited += Milliseconds(1'000)) {
      const auto probes = Probes();
      if (!probes.empty()) {
        fleet_->Probed(*probes[0], kTimeout, {}, Now());
        return waited;
      }
      clock_.Advance(Milliseconds(1'000));
    }
    ADD_FAILURE() << "no server is probed";
    return kAtMost;
  }
};

TEST_F(ComebackTest, RepeatsALostProbe) {
  Fleet& fleet = Of({At(1), At(2), At(3)});
  Happen(2, Refusal(Reason::kDraining), 1, "invoice");
  ASSERT_EQ(Probes().size(), 1u);
  EXPECT_TRUE(Probes().empty()) << "one at a time";
  fleet.Probed(*PickNumber(2), kTimeout, {}, Now());
  clock_.Advance(Milliseconds(1'000));
  const auto probes = Probes();
  ASSERT_EQ(probes.size(), 1u);
  EXPECT_EQ(probes[0]->name, At(2).address);
  fleet.Probed(*probes[0], {}, ServerFacts(), Now());
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
  EXPECT_TRUE(Names(Asked(60, "order"), 2));
}

TEST_F(ComebackTest, QuarantinesAtMostHalfOfTheServers) {
  Of({At(1), At(2), At(3), At(4)});
  for (int i = 1; i <= 4; ++i) End(PickNumber(i), kBroken);
  int quarantined = 0;
  for (int i = 1; i <= 4; ++i) quarantined += HealthOf(i) == ServerHealth::kQuarantined ? 1 : 0;
  EXPECT_EQ(quarantined, 2);
  EXPECT_NE(Pick(), nullptr);
}

TEST_F(ComebackTest, CountsEjectedServersForTheLimitOfQuarantines) {
  Of({At(1), At(2), At(3)});
  Happen(1, kTimeout, 3);
  Happen(2, kBroken);
  EXPECT_NE(HealthOf(2), ServerHealth::kQuarantined);
  EXPECT_FALSE(Names(Asked(), 2)) << "called after the healthy one";
}

TEST_F(ComebackTest, UsesQuarantinedServersWhenFewerThanHalfAreHealthy) {
  Of({At(1), At(2), At(3)});
  Happen(1, kBroken);
  const ServerPtr second = Pick(), third = Pick("order", {second});
  EXPECT_EQ(Pick("order", {second, third}), nullptr) << "two of three are healthy";
  End(second, kBroken);
  const ServerPtr last = Pick("order", {second, third});
  ASSERT_NE(last, nullptr);
  EXPECT_EQ(last->name, At(1).address);
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{third->name, 60}}))
      << "the healthy one comes first";
  EXPECT_EQ(fleet_->counters().panics, 1u);
}

TEST_F(ComebackTest, ProbesAQuarantinedServerEvenIfListsMayChange) {
  Of({At(1), At(2), At(3)});
  Happen(1, kBroken);
  EXPECT_LE(UntilNextProbe(), Milliseconds(31'000));
  clock_.Advance(kAtMost);
  const auto probes = Probes();
  ASSERT_EQ(probes.size(), 1u) << "the first one was lost";
  fleet_->Probed(*probes[0], {}, ServerFacts(), Now());
  EXPECT_EQ(HealthOf(1), ServerHealth::kHealthy);
}

TEST_F(ComebackTest, QuarantinesLongerAfterARepeatedViolation) {
  Of({At(1), At(2), At(3)});
  Milliseconds least{15'000};
  for (int i = 0; i < 3; ++i) {
    Happen(1, kBroken);
    Milliseconds left{0};
    std::vector<ServerPtr> probes;
    for (; (probes = Probes()).empty() && left < kAtMost; left += Milliseconds(1'000)) {
      clock_.Advance(Milliseconds(1'000));
    }
    EXPECT_GE(left, least);
    least *= 2;
    fleet_->Probed(*probes.at(0), {}, ServerFacts(), Now());
  }
}

TEST_F(ComebackTest, ProbesButNeverUsesAForeignServer) {
  Of({At(1)});
  End(Pick(), kStrange);
  EXPECT_EQ(Pick(), nullptr) << "though it is the only one";
  for (int i = 0; i < 3; ++i) EXPECT_LE(UntilNextProbe(), Milliseconds(5'000));
  clock_.Advance(Milliseconds(30'000));
  const auto probes = Probes();
  ASSERT_EQ(probes.size(), 1u);
  fleet_->Probed(*probes[0], {}, ServerFacts(), Now());
  EXPECT_NE(Pick(), nullptr);
}

TEST_F(ComebackTest, DoesNotCountForeignServers) {
  Of({At(1), At(2), At(3)});
  End(PickNumber(1), kStrange);
  End(PickNumber(2), kStrange);
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{At(3).address, 60}}));
  End(Pick(), kBroken);
  EXPECT_NE(Pick(), nullptr) << "it is all there is";
}

TEST_F(ComebackTest, DoesNotBlameAServerForMissingDescriptors) {
  Of({At(1), At(2), At(3)});
  Outcome own = kUnreachable;
  own.shared_blame = true;
  for (int i = 0; i < 20; ++i) End(PickNumber(2), own);
  EXPECT_EQ(HealthOf(2), ServerHealth::kHealthy);
}

TEST_F(ComebackTest, WaitsLongerAfterEachFailedConnect) {
  Fleet& fleet = Of({At(1)});
  const ServerPtr server = Pick();
  for (int i = 0; i < 5; ++i) {
    fleet.Dialled(*server, std::nullopt, {}, Now());
    const Micros left = server->connect_at.load() - Now();
    EXPECT_GE(left, Micros(5'000) * (1 << std::min(i, 3)));
    EXPECT_LE(left, Micros(100'000));
    clock_.Advance(Milliseconds(100));
  }
  fleet.Dialled(*server, NumericAddress(server->endpoint), {}, Now());
  EXPECT_LE(server->connect_at.load(), Now()) << "it was reached";
}

TEST_F(ComebackTest, DoesNotBlameAnOlderServerForAMissingMethod) {
  Of({At(1), At(2), At(3)});
  Outcome lacks = kStrange;
  lacks.lacks_method = true;
  for (int i = 1; i <= 3; ++i) {
    for (int n = 0; n < 20; ++n) End(PickNumber(i), lacks);
  }
  EXPECT_EQ(Asked().size(), 3u);
}

TEST_F(ComebackTest, UsesFailingServersAfterHealthyOnes) {
  Of({At(1), At(2), At(3)});
  for (int i = 1; i <= 2; ++i) {
    for (int n = 0; n < 3; ++n) End(PickNumber(i), kTimeout);
  }
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{At(3).address, 60}}));
  std::vector<ServerPtr> tried = {Pick()};
  for (int i = 0; i < 2; ++i) tried.push_back(Pick("order", tried));
  EXPECT_EQ(HealthOf(1), ServerHealth::kEjected);
  EXPECT_EQ(HealthOf(2), ServerHealth::kFailing);
  EXPECT_EQ(tried[1]->name, At(2).address);
  EXPECT_EQ(tried[2]->name, At(1).address);
}

TEST_F(ComebackTest, ProbesFailingServers) {
  Of({At(1)});
  for (int i = 0; i < 3; ++i) End(Pick(), kTimeout);
  EXPECT_LE(UntilNextProbe(), Milliseconds(1'000));
}

TEST_F(ComebackTest, EjectsLongerIfOnlyProbesAreAnswered) {
  Of({At(1), At(2)});
  Milliseconds longest{0};
  for (int i = 0; i < 8; ++i) {
    for (int n = 0; n < 3; ++n) End(PickNumber(1), kTimeout);
    Milliseconds left{0};
    std::vector<ServerPtr> probes;
    for (; (probes = Probes()).empty() && left < kAtMost; left += Milliseconds(100)) {
      clock_.Advance(Milliseconds(100));
    }
    ASSERT_EQ(probes.size(), 1u);
    fleet_->Probed(*probes[0], {}, ServerFacts(), Now());
    longest = std::max(longest, left);
  }
  EXPECT_GT(longest, Milliseconds(14'000));
}

TEST_F(ComebackTest, SpreadsTheReturnOfClientsAfterAnAdvisedTime) {
  std::set<int> kept;
  for (int seed = 1; seed <= 20; ++seed) {
    ServerList list{.servers = {At(1), At(2)}};
    Fleet fleet(options_, clock_, static_cast<uint64_t>(seed));
    fleet.Apply(list);
    const ServerPtr one = fleet.Pick("order", {}, Now());
    fleet.Done(*one, "order", Refusal(Reason::kNotReady, Milliseconds(1'000)), Micros(1), Now());
    const Micros before = Now();
    const auto back = [&](int ms) {
      for (int i = 0; i < 20; ++i) {
        const ServerPtr next = fleet.Pick("order", {}, before + Milliseconds(ms));
        fleet.GiveBack(*next);
        if (next == one) return true;
      }
      return false;
    };
    EXPECT_FALSE(back(999));
    EXPECT_TRUE(back(1'500));
    int at = 1'000;
    while (!back(at)) ++at;
    kept.insert(at / 50);
  }
  EXPECT_GE(kept.size(), 4u) << "they are spread";
}

TEST_F(ComebackTest, ResolvesASilentServerAgainEvenIfItIsTheOnlyOne) {
  Fleet& fleet = Of({{.address = "firn.example:7609"}});
  EXPECT_EQ(fleet.TakeUnresolved(Now()).size(), 1u);
  fleet.Resolved("firn.example:7609", {NumericAddress(*Endpoint::Parse("10.0.0.1:7609"))});
  for (int i = 0; i < 3; ++i) End(Pick(), kTimeout);
  clock_.Advance(Milliseconds(2'000));
  EXPECT_EQ(fleet.TakeUnresolved(Now()).size(), 1u);
}

TEST_F(ComebackTest, ResolvesEveryNameOnceAMinute) {
  Fleet& fleet = Of({{.address = "firn.example:7609"}});
  EXPECT_EQ(fleet.TakeUnresolved(Now()).size(), 1u);
  fleet.Resolved("firn.example:7609", {NumericAddress(*Endpoint::Parse("10.0.0.1:7609"))});
  clock_.Advance(Milliseconds(39'000));
  EXPECT_TRUE(fleet.TakeUnresolved(Now()).empty());
  clock_.Advance(Milliseconds(21'000));
  EXPECT_EQ(fleet.TakeUnresolved(Now()).size(), 1u);
}

// --- a client that uses one server ---------------------------------------------------------------

class OneServerTest : public ComebackTest {
 protected:
  OneServerTest() { options_.servers_max = 1; }
};

TEST_F(OneServerTest, ARetryUsesAnotherServerAndChangesNothing) {
  Of({At(1), At(2), At(3)});
  const ServerPtr used = Pick();
  EXPECT_NE(Pick("order", {used}), used);
  End(used, kTimeout);
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{used->name, 60}})) << "it is still healthy";
}

TEST_F(OneServerTest, UsesTheOthersWhileItIsUnhealthyAndReturns) {
  Of({At(1), At(2), At(3)});
  const ServerPtr used = Pick();
  for (int i = 0; i < 3; ++i) End(used, kTimeout);
  const auto others = Asked();
  EXPECT_EQ(others.size(), 2u);
  EXPECT_FALSE(others.contains(used->name));
  clock_.Advance(Milliseconds(1'000));
  for (const ServerPtr& server : Probes()) fleet_->Probed(*server, {}, ServerFacts(), Now());
  EXPECT_EQ(Asked(), (std::map<std::string, int>{{used->name, 60}}));
}

TEST_F(OneServerTest, IsChosenByWeight) {
  KnownServer heavy = At(1);
  heavy.weight = 300;
  int on_heavy = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    Fleet fleet(options_, clock_, seed);
    fleet.Apply({.servers = {heavy, At(2)}});
    on_heavy += fleet.Pick("order", {}, Now())->name == heavy.address ? 1 : 0;
  }
  EXPECT_NEAR(on_heavy, 1500, 100);
}

}  // namespace
}  // namespace firn::client
