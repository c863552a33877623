#include "common/id/claim.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

// A claim in a layout with ticks of a second. Tests give times in milliseconds after tick 100.
class ClaimTest : public testing::Test {
 protected:
  WallMs After(int64_t ms) const { return layout_.StartOf(Tick(100)) + Milliseconds(ms); }

  const Layout layout_ = Layout::VestaMaxPeak();
};

TEST_F(ClaimTest, BeginsAtTheFirstWholeTickAtOrAfterItsBase) {
  EXPECT_EQ(Claim(layout_, MachineId(5), After(0)).first_tick(), Tick(100));
  EXPECT_EQ(Claim(layout_, MachineId(5), After(1)).first_tick(), Tick(101));
  EXPECT_EQ(Claim(layout_, MachineId(5), After(1000)).first_tick(), Tick(101));
}

TEST_F(ClaimTest, GrantsNothingUntilItIsExtended) {
  const Claim claim(layout_, MachineId(5), After(1));
  EXPECT_EQ(claim.end_tick(), claim.first_tick());
}

TEST_F(ClaimTest, GrantsTicksThatLieWhollyBeforeTheLimit) {
  Claim claim(layout_, MachineId(5), After(0));
  claim.ExtendTo(After(2'999));
  EXPECT_EQ(claim.end_tick(), Tick(102));
  claim.ExtendTo(After(3'000));
  EXPECT_EQ(claim.end_tick(), Tick(103));
}

TEST_F(ClaimTest, ALowerLimitChangesNothing) {
  Claim claim(layout_, MachineId(5), After(0));
  claim.ExtendTo(After(-5'000));
  EXPECT_EQ(claim.end_tick(), Tick(100));
  claim.ExtendTo(After(9'000));
  claim.ExtendTo(After(4'000));
  EXPECT_EQ(claim.end_tick(), Tick(109));
}

}  // namespace
}  // namespace firn
