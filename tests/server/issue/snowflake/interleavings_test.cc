// The issuing path in every order of its threads, on weak memory, and again without each of its
// memory orders: a memory order that no scenario needs must not be in the code.

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>

#include <gtest/gtest.h>

#include "tests/server/issue/snowflake/interleaved_scenarios.h"

namespace firn {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int64_t kRandomRuns = 1'000;

const std::vector<NamedScenario>& Scenarios() {
  static const auto* all = [] {
    auto* scenarios = new std::vector<NamedScenario>;
    for (const auto& some : {SequenceScenarios(), SnowflakeScenarios(), CursorScenarios()}) {
      scenarios->insert(scenarios->end(), some.begin(), some.end());
    }
    return scenarios;
  }();
  return *all;
}

// Explores each scenario once.
const std::vector<Exploration>& Explorations() {
  static const auto* all = [] {
    auto* explorations = new std::vector<Exploration>;
    for (const NamedScenario& one : Scenarios()) {
      explorations->push_back(Explore(one.scenario, one.limits));
    }
    return explorations;
  }();
  return *all;
}

std::set<Weakening> OrdersThatAreMet() {
  std::set<Weakening> orders;
  for (const Exploration& found : Explorations()) {
    orders.insert(found.orders.begin(), found.orders.end());
  }
  return orders;
}

bool IsMissed(const Weakening& order) {
  std::multimap<int64_t, const NamedScenario*> by_length;
  for (size_t i = 0; i < Scenarios().size(); ++i) {
    const Exploration& found = Explorations()[i];
    if (found.orders.contains(order)) by_length.emplace(found.runs, &Scenarios()[i]);
  }
  return std::any_of(by_length.begin(), by_length.end(), [&order](const auto& entry) {
    const NamedScenario& one = *entry.second;
    return Explore(one.scenario, one.limits, order).violation.has_value();
  });
}

// Returns the number of memory orders in a file.
size_t OrdersIn(const std::string& path) {
  std::ifstream file(std::string(FIRN_SOURCE_DIR) + "/" + path);
  EXPECT_TRUE(file.is_open()) << path;
  static const std::regex kOrder("memory_order_(acquire|release|acq_rel|seq_cst)");
  size_t count = 0;
  for (std::string line; std::getline(file, line);) {
    count += static_cast<size_t>(
        std::distance(std::sregex_iterator(line.begin(), line.end(), kOrder), {}));
  }
  return count;
}

TEST(Interleavings, NoIdIsIssuedTwiceInAnyThreadOrder) {
  for (size_t i = 0; i < Scenarios().size(); ++i) {
    const Exploration& found = Explorations()[i];
    EXPECT_EQ(found.violation.value_or(""), "") << Scenarios()[i].name;
    EXPECT_TRUE(found.complete) << Scenarios()[i].name << ": cut short after " << found.runs;
  }
}

TEST(Interleavings, NoIdIsIssuedTwiceInRandomThreadOrders) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  for (const NamedScenario& one : Scenarios()) {
    const Exploration found = ExploreAtRandom(one.scenario, kSeed, kRandomRuns);
    EXPECT_EQ(found.violation.value_or(""), "") << one.name;
  }
}

TEST(Interleavings, AScenarioFailsWithoutEachMemoryOrder) {
  for (const Weakening& order : OrdersThatAreMet()) {
    EXPECT_TRUE(IsMissed(order))
        << order.site.text() << ": no scenario fails without this "
        << (order.part == OrderPart::kAcquire ? "acquire" : "release")
        << ": it is not needed, or a scenario is missing that shows why it is";
  }
}

// Otherwise a memory order that is never executed would count as needed.
TEST(Interleavings, ScenariosExecuteEachMemoryOrderOfTheIssuingPath) {
  const std::set<Weakening> orders = OrdersThatAreMet();
  for (const std::string path :
       {"common/id/claim.h", "common/id/claim.cc", "common/id/id_clock.h", "common/id/id_clock.cc",
        "server/issue/range_cursor.h", "server/issue/range_cursor.cc",
        "common/sequence/sequencer_kinds.h", "server/issue/snowflake/snowflake.cc",
        "common/sequence/tick_source.h", "common/sequence/tick_source.cc"}) {
    std::set<std::pair<uint32_t, uint32_t>> sites;
    for (const Weakening& order : orders) {
      if (order.site.file.ends_with(path)) sites.insert({order.site.line, order.site.column});
    }
    EXPECT_EQ(sites.size(), OrdersIn(path)) << path;
  }
}

}  // namespace
}  // namespace firn
