#include "server/node/readiness.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

const Refusal kNoClaim{Reason::kNotReady, "no machine id", 0, true};
const Refusal kClock{Reason::kClock, "the clock is behind", 0, true};
constexpr BootMs kStart{1'000};

TEST(ReadinessTest, ReportsAFaultAtOnceBeforeTheFirstId) {
  Readiness readiness;
  EXPECT_TRUE(readiness.why_not().has_value());
  readiness.Note(kNoClaim, kStart);
  EXPECT_EQ(readiness.why_not(), "no machine id");
  readiness.Note(kClock, kStart);
  EXPECT_EQ(readiness.why_not(), "the clock is behind");
  readiness.Note({}, kStart);
  EXPECT_FALSE(readiness.why_not().has_value());
}

TEST(ReadinessTest, AFaultCountsAfterItHasLasted) {
  Readiness readiness;
  readiness.Note({}, kStart);
  readiness.Note(kClock, kStart);
  readiness.Note(kNoClaim, kStart + Readiness::kStands - Milliseconds(1));
  EXPECT_FALSE(readiness.why_not().has_value());
  readiness.Note(kNoClaim, kStart + Readiness::kStands);
  EXPECT_EQ(readiness.why_not(), "no machine id");
  readiness.Note({}, kStart + Readiness::kStands);
  EXPECT_FALSE(readiness.why_not().has_value()) << "its end counts at once";
}

TEST(ReadinessTest, AFaultThatEndsSoonDoesNotCount) {
  Readiness readiness;
  readiness.Note({}, kStart);
  for (int i = 0; i < 10; ++i) {
    const BootMs now = kStart + i * Readiness::kStands / 2;
    readiness.Note(i % 2 == 0 ? std::optional(kNoClaim) : std::nullopt, now);
    EXPECT_FALSE(readiness.why_not().has_value());
  }
}

}  // namespace
}  // namespace firn
