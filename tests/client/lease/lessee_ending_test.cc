// A lease that is ending: its server extends it up to a final bound.

#include <algorithm>

#include <gtest/gtest.h>

#include "client/lease/lessee.h"
#include "tests/client/lease/lessee_rig.h"

namespace firn {
namespace {

using Kind = LeaseRequest::Kind;
constexpr Milliseconds kOneSecond{1'000};

TEST(LesseeEndingTest, RenewsAnEndingLeaseUpToItsBound) {
  LesseeRig rig;
  rig.Tick();
  const WallMs begin = rig.clock().Wall();
  LeaseGrant terms = rig.Terms(7, begin, begin + 60 * kOneSecond);
  terms.ending = true;
  rig.Reply(rig.Newest(Kind::kGrant), terms);
  const WallMs bound = begin + 180 * kOneSecond;
  size_t answered = 0;
  for (int second = 0; second < 159; ++second) {
    rig.Pass(kOneSecond);
    if (rig.sent(Kind::kRenew) == answered) continue;
    answered = rig.sent(Kind::kRenew);
    const WallMs end = std::min(rig.clock().Wall() + 60 * kOneSecond, bound);
    terms.until = terms.layout.TickAt(end);
    rig.Reply(rig.Newest(Kind::kRenew), terms);
    EXPECT_EQ(rig.Next().machine, MachineId(7));
  }
  EXPECT_GE(answered, 6u);
  EXPECT_EQ(rig.sent(Kind::kGrant), 1u) << "a third is left";
  rig.Pass(3 * kOneSecond);
  EXPECT_GE(rig.sent(Kind::kGrant), 2u);
  rig.Pass(17 * kOneSecond);
  EXPECT_EQ(rig.Next().machine, MachineId(7));
  EXPECT_TRUE(rig.losses().empty());
}

}  // namespace
}  // namespace firn
