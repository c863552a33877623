// Many want a machine id at one moment.

#include <algorithm>
#include <vector>

#include "tests/drill/drill.h"

namespace firn {
namespace {

class StormDrill : public Drill {
 protected:
  static int ServingOf(const std::vector<Claimant*>& claimants) {
    int serving = 0;
    for (Claimant* claimant : claimants) serving += claimant->serving_members();
    return serving;
  }
};

TEST_F(StormDrill, TwoHundredFiftySixAtOnceAreAllServed) {
  constexpr int kProcesses = 4;
  constexpr int kEach = 64;
  StartEnsemble(1, kProcesses * kEach);
  std::vector<Claimant*> all;
  for (int i = 0; i < kProcesses; ++i) {
    all.push_back(
        &Launch("p" + std::to_string(i),
                {.members = kEach, .session = Milliseconds(20'000), .pause = Milliseconds(50)}));
  }
  EXPECT_TRUE(Waits(*all[0], "stood among 256", [&] {
    return ServingOf(all) == kProcesses * kEach;
  })) << ServingOf(all);
  BootMs last = all[0]->launched();
  for (Claimant* claimant : all) {
    for (int i = 0; i < claimant->members(); ++i) {
      const auto& runs = claimant->member(i).runs();
      if (!runs.empty()) last = std::max(last, runs.front().at);
    }
  }
  Figure("launch to the last one's first id", last - all[0]->launched());
}

}  // namespace
}  // namespace firn
