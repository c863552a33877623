// Tests the subset of a large cluster's servers that a client uses.

#include "client/fleet/subset.h"

#include <algorithm>
#include <set>

#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

constexpr int kServers = 100;
constexpr size_t kMost = 16;

struct Listed {
  int number;
  int weight = 100;
  uint32_t rack = 0;
};

std::vector<Listed> Cluster(int servers) {
  std::vector<Listed> cluster;
  for (int i = 0; i < servers; ++i) cluster.push_back({.number = i});
  return cluster;
}

std::set<int> Chosen(uint64_t client, const std::vector<Listed>& cluster,
                     std::optional<uint32_t> rack = {}) {
  std::vector<SubsetLot> lots;
  for (const Listed& one : cluster) {
    lots.push_back({DrawLot(client, At(one.number).address) / one.weight, one.rack});
  }
  std::set<int> chosen;
  for (const size_t at : ChooseSubset(lots, kMost, rack)) chosen.insert(cluster[at].number);
  return chosen;
}

// Returns the number of clients of each server.
std::map<int, int> ClientsOf(const std::vector<Listed>& cluster, uint64_t clients) {
  std::map<int, int> of;
  for (uint64_t client = 0; client < clients; ++client) {
    for (const int number : Chosen(client, cluster)) ++of[number];
  }
  return of;
}

TEST(SubsetTest, AllServersHaveAboutAsManyClients) {
  // Each server should have 1,600 clients, with a standard deviation of 37.
  for (const auto& [number, clients] : ClientsOf(Cluster(kServers), 10'000)) {
    EXPECT_NEAR(clients, 1'600, 190) << number;
  }
}

TEST(SubsetTest, AServerOfTwiceTheWeightHasTwiceTheClients) {
  std::vector<Listed> cluster = Cluster(1'000);
  for (Listed& one : cluster) one.weight = one.number < 500 ? 100 : 200;
  int light = 0, heavy = 0;
  for (const auto& [number, clients] : ClientsOf(cluster, 500)) {
    (number < 500 ? light : heavy) += clients;
  }
  EXPECT_NEAR(static_cast<double>(heavy) / light, 2.0, 0.15);
}

TEST(SubsetTest, ReplacesALeavingServerByOneAndMovesNoOther) {
  const std::vector<Listed> all = Cluster(kServers);
  for (uint64_t client = 0; client < 100; ++client) {
    const std::set<int> before = Chosen(client, all);
    std::vector<Listed> rest = all;
    const int gone = *before.begin();
    std::erase_if(rest, [gone](const Listed& one) { return one.number == gone; });
    const std::set<int> after = Chosen(client, rest);
    EXPECT_EQ(after.size(), kMost);
    std::set<int> both;
    std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                          std::inserter(both, both.end()));
    EXPECT_EQ(both.size(), kMost - 1);
    EXPECT_EQ(Chosen(client, all), before) << "when it is back so are its clients";
  }
}

TEST(SubsetTest, AQuarterIsOfOtherRacks) {
  std::vector<Listed> cluster = Cluster(kServers);
  for (Listed& one : cluster) one.rack = one.number < 50 ? 7 : 8;
  const std::set<int> chosen = Chosen(1, cluster, 7);
  EXPECT_EQ(chosen.size(), kMost);
  EXPECT_EQ(std::count_if(chosen.begin(), chosen.end(), [](int n) { return n < 50; }), 12);
  for (Listed& one : cluster) one.rack = one.number < 5 ? 7 : 8;
  const std::set<int> few = Chosen(1, cluster, 7);
  EXPECT_EQ(few.size(), kMost);
  EXPECT_EQ(std::count_if(few.begin(), few.end(), [](int n) { return n < 5; }), 5);
  for (Listed& one : cluster) one.rack = one.number < 98 ? 7 : 8;
  EXPECT_EQ(Chosen(1, cluster, 7).size(), kMost);
}

// --- a fleet that uses a subset of its servers --------------------------------------------------

class KeepingTest : public FleetTest {
 protected:
  // Creates a fleet of this many servers. Returns the ones that calls use.
  std::set<std::string> Keep(int servers) {
    std::vector<KnownServer> all;
    for (int i = 1; i <= servers; ++i) all.push_back(At(i));
    Of(std::move(all));
    return Names();
  }
  std::set<std::string> Names() {
    std::set<std::string> names;
    for (const auto& [name, calls] : Asked(1'000)) names.insert(name);
    return names;
  }
  // Lets calls at all of these fail until they are ejected.
  void Eject(std::set<std::string> names) {
    for (int i = 0; i < 10'000 && !names.empty(); ++i) {
      const ServerPtr server = Pick();
      const bool it = names.contains(server->name);
      for (int failures = 0; it && failures < 3; ++failures) {
        if (failures > 0) fleet_->Borrow(*server);
        End(server, kTimeout);
      }
      if (it) names.erase(server->name);
      if (!it) End(server, {});
    }
    EXPECT_TRUE(names.empty());
  }
};

TEST_F(KeepingTest, UsesSixteenOfManyServers) {
  EXPECT_EQ(Keep(50).size(), 16u);
  EXPECT_EQ(Keep(16).size(), 16u);
  options_.servers_max = 0;
  EXPECT_EQ(Keep(50).size(), 50u);
}

TEST_F(KeepingTest, ReplacesALeavingServerByOneOther) {
  const std::set<std::string> before = Keep(50);
  std::erase_if(list_.servers, [&](const auto& one) { return one.address == *before.begin(); });
  fleet_->Apply(list_);
  const std::set<std::string> after = Names();
  EXPECT_EQ(after.size(), 16u);
  std::set<std::string> both;
  std::set_intersection(before.begin(), before.end(), after.begin(), after.end(),
                        std::inserter(both, both.end()));
  EXPECT_EQ(both.size(), 15u);
}

TEST_F(KeepingTest, UsesAllServersWhileFewerThanThreeAreHealthy) {
  std::set<std::string> kept = Keep(50);
  const std::set<std::string> three(kept.begin(), std::next(kept.begin(), 3));
  for (const std::string& name : three) kept.erase(name);
  Eject(kept);
  EXPECT_EQ(Names(), three);
  Eject({*three.begin()});
  EXPECT_EQ(Names().size(), 50u - 14u);
}

TEST_F(KeepingTest, ACallFailsOverToServersOutsideTheSubset) {
  Keep(50);
  std::vector<ServerPtr> tried;
  while (tried.size() < 50) {
    tried.push_back(Pick("order", tried));
    ASSERT_NE(tried.back(), nullptr);
  }
  EXPECT_EQ(Pick("order", tried), nullptr);
}

TEST_F(KeepingTest, ResolvesOnlyTheNamesThatItNeeds) {
  std::vector<KnownServer> all;
  for (int i = 1; i <= 50; ++i) all.push_back({.address = "s" + std::to_string(i) + ".example:1"});
  EXPECT_EQ(Of(all).TakeUnresolved(Now()).size(), 16u);
  options_.servers_max = 1;
  EXPECT_EQ(Of(all).TakeUnresolved(Now()).size(), 3u) << "two to which a call may fail over";
}

}  // namespace
}  // namespace firn::client
