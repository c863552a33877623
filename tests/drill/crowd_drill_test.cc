// Tests more claimants than machine ids.

#include <algorithm>
#include <vector>

#include "tests/drill/drill.h"

namespace firn {
namespace {

class CrowdDrill : public Drill {
 protected:
  static int ServingOf(const std::vector<Claimant*>& claimants) {
    int serving = 0;
    for (Claimant* claimant : claimants) serving += claimant->serving_members();
    return serving;
  }
};

TEST_F(CrowdDrill, TheSeventeenthClaimantWaitsForOneOfSixteenMachineIds) {
  constexpr int kMachines = 16;
  StartEnsemble(1, kMachines);
  std::vector<Claimant*> all;
  for (int i = 0; i <= kMachines; ++i) {
    all.push_back(&Launch("c" + std::to_string(i),
                          {.session = Milliseconds(10'000), .pause = Milliseconds(20)}));
  }
  ASSERT_TRUE(Waits(*all[0], "stood among 16", [&] { return ServingOf(all) == kMachines; }));
  const auto odd = std::find_if(all.begin(), all.end(), [](Claimant* c) { return !c->serving(); });
  Claimant& left_out = **odd;
  EXPECT_TRUE(Refuses(left_out, "no machine id is free"));
  EXPECT_EQ(left_out.runs(), 0u);

  Claimant& leaver = left_out.name() == all[0]->name() ? *all[1] : *all[0];
  const auto machine = leaver.machine();
  StopCleanly(leaver);
  const BootMs left = TestNow();
  ASSERT_TRUE(Serves(left_out));
  EXPECT_EQ(left_out.machine(), machine);
  Figure("machine id free to its first id", left_out.first_run()->at - left);
  EXPECT_TRUE(IssuesMore(left_out, 20));
}

}  // namespace
}  // namespace firn
