// Tests many simultaneous claims: 64, or the number in FIRN_STORM.

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/drill/drill.h"

namespace firn {
namespace {

constexpr int kProcesses = 4;
constexpr Milliseconds kSession{30'000};  // so that no session expires on a busy machine

class StormDrill : public Drill {
 protected:
  static int Crowd() {
    const char* const said = std::getenv("FIRN_STORM");
    return said == nullptr ? 64 : std::max(kProcesses, std::atoi(said));
  }
  static int ServingOf(const std::vector<Claimant*>& claimants) {
    int serving = 0;
    for (Claimant* claimant : claimants) serving += claimant->serving_members();
    return serving;
  }
  static BootMs LastFirstId(const std::vector<Claimant*>& claimants) {
    BootMs last;
    for (Claimant* claimant : claimants) {
      for (int i = 0; i < claimant->members(); ++i) {
        const auto& runs = claimant->member(i).runs();
        if (!runs.empty()) last = std::max(last, runs.front().at);
      }
    }
    return last;
  }
};

TEST_F(StormDrill, ServesAsManySimultaneousClaimsAsThereAreMachineIds) {
  const int each = Crowd() / kProcesses;
  StartEnsemble(1, kProcesses * each);
  std::vector<Claimant*> all;
  for (int i = 0; i < kProcesses; ++i) {
    all.push_back(&Launch("p" + std::to_string(i),
                          {.members = each, .session = kSession, .pause = Milliseconds(50)}));
  }
  ASSERT_TRUE(Waits(*all[0], "stood in a crowd that was served", [&] {
    return ServingOf(all) == kProcesses * each;
  })) << ServingOf(all);
  Count("claims", kProcesses * each);
  Figure("launch to the last one's first id", LastFirstId(all) - all[0]->launched());
  const auto clock = ReadNode(kClockPath);
  ASSERT_TRUE(clock.ok()) << clock.status();
  // Each try begins with a write of the clock node. The surplus tries are lost races.
  EXPECT_GE(clock->stat.version, kProcesses * each);
  Count("tries", clock->stat.version);
}

}  // namespace
}  // namespace firn
