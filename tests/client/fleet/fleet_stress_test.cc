// Tests a fleet that many threads use at the same time, with successful and failed calls, changing
// lists, probes and lookups. The thread sanitizer finds data races, and the counters at the end
// show lost attempts.

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "client/fleet/fleet.h"
#include "tests/support/virtual_clock.h"

namespace firn::client {
namespace {

constexpr int kCallsOfAThread = 4'000;
constexpr uint64_t kServers = 12;

ServerList SomeServers(Entropy& entropy) {
  ServerList list;
  for (uint64_t i = 0; i < kServers; ++i) {
    if (entropy.Below(4) == 0) continue;
    list.servers.push_back({.address = "10.0.0." + std::to_string(i + 1) + ":7609",
                            .weight = static_cast<int>(entropy.Below(200))});
  }
  return list;
}

Outcome SomeOutcome(Entropy& entropy) {
  constexpr AttemptEnd kEnds[] = {AttemptEnd::kTimeout, AttemptEnd::kBroken,
                                  AttemptEnd::kWrongService, AttemptEnd::kUnreachable};
  if (entropy.Below(4) != 0) return {};
  if (entropy.Below(2) == 0) return Outcome::Of(kEnds[entropy.Below(4)], "as the test says");
  Outcome refusal = Outcome::Of(AttemptEnd::kRefused, "no");
  refusal.refusal = entropy.Below(2) == 0 ? Reason::kStoreDown : Reason::kDraining;
  return refusal;
}

class FleetStressTest : public testing::Test {
 protected:
  FleetStressTest() : fleet_({}, clock_, 42) {
    SeededEntropy entropy(3);
    fleet_.Apply(SomeServers(entropy));  // the callers may finish before the maintainer starts
  }

  void CallAround(uint64_t seed) {
    SeededEntropy entropy(seed);
    for (int i = 0; i < kCallsOfAThread; ++i) {
      std::vector<ServerPtr> tried;
      while (tried.size() < 3) {
        const ServerPtr server = fleet_.Pick("order", tried, clock_.BootMicros());
        if (server == nullptr) break;
        ++picked_;
        fleet_.Done(*server, "order", SomeOutcome(entropy), Micros(100), clock_.BootMicros());
        tried.push_back(server);
      }
    }
  }
  void Maintain() {
    SeededEntropy entropy(7);
    while (!over_) {
      fleet_.Apply(SomeServers(entropy));
      clock_.Advance(Milliseconds(300));
      for (const ServerPtr& server : fleet_.TakeProbes(clock_.BootMicros())) {
        fleet_.Probed(*server, SomeOutcome(entropy), {}, clock_.BootMicros());
      }
      static_cast<void>(fleet_.View());
      std::this_thread::yield();
    }
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  Fleet fleet_;
  std::atomic<bool> over_ = false;
  std::atomic<uint64_t> picked_ = 0;
};

TEST_F(FleetStressTest, EndsWithNothingInFlightAndEveryAttemptCounted) {
  std::jthread maintainer([this] { Maintain(); });
  {
    std::vector<std::jthread> callers;
    for (uint64_t i = 0; i < 4; ++i) callers.emplace_back([this, i] { CallAround(i); });
  }
  over_ = true;
  maintainer.join();
  for (const SeenServer& server : fleet_.View().servers) EXPECT_EQ(server.in_flight, 0);
  EXPECT_GT(picked_, 0u);
  EXPECT_GT(fleet_.counters().attempts, 0u);
}

}  // namespace
}  // namespace firn::client
