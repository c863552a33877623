// Tests lessees under random faults: no id is issued twice, and each lessee's ids rise.

#include "tests/client/lease/lessee_world.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

constexpr uint64_t kSeeds = 12;
// A fault shows only if two lessees of a machine id also draw the same tick and sequence, which is
// rare.
constexpr uint64_t kSeedsWithFault = 100;
constexpr int kSteps = 4'000;

uint64_t DuplicatesWith(LeaseFault fault) {
  for (uint64_t seed = 1; seed <= kSeedsWithFault; ++seed) {
    LesseeWorld world(seed, fault);
    for (int step = 0; step < kSteps; ++step) world.Step();
    if (world.outcome().duplicates > 0) return world.outcome().duplicates;
  }
  return 0;
}

TEST(LesseeWorldTest, NoIdIsIssuedTwice) {
  LesseeWorld::Outcome all;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    LesseeWorld world(seed, LeaseFault::kNone);
    for (int step = 0; step < kSteps; ++step) world.Step();
    const LesseeWorld::Outcome& outcome = world.outcome();
    ASSERT_EQ(outcome.duplicates, 0u) << "seed " << seed;
    ASSERT_EQ(outcome.descents, 0u) << "seed " << seed;
    all.ids += outcome.ids;
    all.grants += outcome.grants;
    all.gone += outcome.gone;
    all.expired += outcome.expired;
    all.released += outcome.released;
  }
  // Every kind of fault has occurred, and ids were issued nevertheless.
  EXPECT_GT(all.ids, 100'000u);
  EXPECT_GT(all.grants, 1'000u);
  EXPECT_GT(all.gone, 10u);
  EXPECT_GT(all.expired, 10u);
  EXPECT_GT(all.released, 10u);
}

TEST(LesseeWorldTest, ServersThatBreakARuleAreFound) {
  EXPECT_GT(DuplicatesWith(LeaseFault::kExtendsForeign), 0u);
  EXPECT_GT(DuplicatesWith(LeaseFault::kIgnoresBounds), 0u);
  EXPECT_GT(DuplicatesWith(LeaseFault::kForgetsPromises), 0u);
}

}  // namespace
}  // namespace firn
