#include "client/fleet/membership.h"

#include <algorithm>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "client/fleet/server.h"
#include "client/fleet/tag_limits.h"

namespace firn::client {
namespace {

using Event = Membership::Event;
using Kind = Membership::Kind;
using State = Membership::State;

constexpr Micros kNow{1'000'000};
constexpr Micros kLater = kNow + Membership::kRecheck;

// A cell of the table: a state, an event, and the next state.
struct Cell {
  State from;
  Event event;
  State to;
};

std::string NameOf(const State& state) {
  constexpr const char* kNames[] = {"Member", "Draining", "Quarantined", "Foreign"};
  return kNames[static_cast<size_t>(state.kind)];
}

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << NameOf(cell.from) << " hears event " << static_cast<int>(cell.event);
}

class MembershipTableTest : public testing::TestWithParam<Cell> {};

TEST_P(MembershipTableTest, FollowsTheTable) {
  const Cell& cell = GetParam();
  EXPECT_EQ(NameOf(Membership::After(cell.from, cell.event, kNow)), NameOf(cell.to));
}

constexpr State kMember{Kind::kMember}, kDraining{Kind::kDraining},
    kQuarantined{Kind::kQuarantined}, kForeign{Kind::kForeign};

constexpr State Probed(Kind kind) { return {kind, {.under_way = true}}; }

INSTANTIATE_TEST_SUITE_P(
    Table, MembershipTableTest,
    testing::Values(
        Cell{kMember, Event::kListed, kMember}, Cell{kMember, Event::kGivesIds, kMember},
        Cell{kMember, Event::kSaysDraining, kDraining},
        Cell{kMember, Event::kBreaksProtocol, kQuarantined},
        Cell{kMember, Event::kIsForeign, kForeign}, Cell{kMember, Event::kSeenStaying, kMember},
        Cell{kMember, Event::kSeenDraining, kDraining}, Cell{kMember, Event::kNotSeen, kMember},
        Cell{kDraining, Event::kListed, kMember}, Cell{kDraining, Event::kGivesIds, kMember},
        Cell{Probed(Kind::kDraining), Event::kGivesIds, kMember},
        Cell{kDraining, Event::kSaysDraining, kDraining},
        Cell{kDraining, Event::kBreaksProtocol, kQuarantined},
        Cell{kDraining, Event::kIsForeign, kForeign}, Cell{kDraining, Event::kSeenStaying, kMember},
        Cell{kDraining, Event::kSeenDraining, kDraining},
        Cell{Probed(Kind::kDraining), Event::kNotSeen, kDraining},
        Cell{kQuarantined, Event::kListed, kMember},
        Cell{kQuarantined, Event::kGivesIds, kQuarantined},
        Cell{kQuarantined, Event::kSaysDraining, kQuarantined},
        Cell{kQuarantined, Event::kBreaksProtocol, kQuarantined},
        Cell{kQuarantined, Event::kIsForeign, kForeign},
        Cell{kQuarantined, Event::kSeenStaying, kQuarantined},
        Cell{kQuarantined, Event::kSeenDraining, kQuarantined},
        Cell{Probed(Kind::kQuarantined), Event::kNotSeen, kQuarantined},
        Cell{Probed(Kind::kQuarantined), Event::kSeenStaying, kMember},
        Cell{Probed(Kind::kQuarantined), Event::kSeenDraining, kDraining},
        Cell{kForeign, Event::kListed, kMember}, Cell{kForeign, Event::kGivesIds, kForeign},
        Cell{kForeign, Event::kSaysDraining, kForeign},
        Cell{kForeign, Event::kBreaksProtocol, kForeign},
        Cell{kForeign, Event::kIsForeign, kForeign}, Cell{kForeign, Event::kSeenStaying, kForeign},
        Cell{kForeign, Event::kSeenDraining, kForeign},
        Cell{Probed(Kind::kForeign), Event::kNotSeen, kForeign},
        Cell{Probed(Kind::kForeign), Event::kSeenStaying, kMember},
        Cell{Probed(Kind::kForeign), Event::kSeenDraining, kDraining}));

class MembershipTest : public testing::Test {
 protected:
  bool Hear(Event event, Micros now) { return membership_.Hear(event, now, entropy_); }

  SeededEntropy entropy_{1};
  Membership membership_;
};

TEST_F(MembershipTest, ProbesAtOnceAServerWhoseRefusalSaysDraining) {
  EXPECT_FALSE(membership_.TakeProbe(kNow));
  EXPECT_TRUE(Hear(Event::kSaysDraining, kNow));
  EXPECT_FALSE(Hear(Event::kSaysDraining, kNow)) << "it is so already";
  EXPECT_TRUE(membership_.TakeProbe(kNow));
  EXPECT_FALSE(membership_.TakeProbe(kLater)) << "the first probe is under way";
  Hear(Event::kSeenDraining, kNow);
  EXPECT_FALSE(membership_.TakeProbe(kLater - Micros(1)));
  EXPECT_TRUE(membership_.TakeProbe(kLater));
}

TEST_F(MembershipTest, ProbesAgainAfterGrowingTimesWhenAProbeFails) {
  Hear(Event::kSaysDraining, kNow);
  Micros now = kNow, longest{1'000'000};
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(membership_.TakeProbe(now));
    EXPECT_FALSE(Hear(Event::kNotSeen, now));
    EXPECT_FALSE(membership_.TakeProbe(now + longest / 2 - Micros(1)));
    now += longest;
    longest = std::min(longest * 2, Membership::kRecheck);
  }
}

TEST_F(MembershipTest, EndsAQuarantineOnlyByItsOwnProbe) {
  Hear(Event::kBreaksProtocol, kNow);
  Hear(Event::kSeenStaying, kNow);
  EXPECT_TRUE(membership_.quarantined()) << "the probe had another reason";
  EXPECT_TRUE(membership_.TakeProbe(kLater));
  EXPECT_TRUE(Hear(Event::kSeenStaying, kLater));
  EXPECT_TRUE(membership_.member());
}

TEST_F(MembershipTest, DiscardsAProbeWhenTheServerBreaksTheProtocolAgain) {
  Hear(Event::kBreaksProtocol, kNow);
  EXPECT_TRUE(membership_.TakeProbe(kLater));
  Hear(Event::kBreaksProtocol, kLater);
  Hear(Event::kSeenStaying, kLater);
  EXPECT_TRUE(membership_.quarantined());
}

TEST_F(MembershipTest, KeepsTheTimeOfTheProbeWhenManyConnectionsReportOneViolation) {
  for (int i = 0; i < 20; ++i) Hear(Event::kBreaksProtocol, kNow);
  EXPECT_TRUE(membership_.TakeProbe(kLater));
}

TEST_F(MembershipTest, LeavesAnEjectedServerEjected) {
  Server server(1, "10.0.0.7:7609", {"10.0.0.7", 7609});
  server.health.Failed(3);
  server.health.TakeOut(true, kNow, entropy_);
  server.membership.Hear(Event::kSaysDraining, kNow, entropy_);
  EXPECT_EQ(server.Standing(), ServerHealth::kDraining);
  server.membership.Hear(Event::kListed, kNow, entropy_);
  EXPECT_EQ(server.Standing(), ServerHealth::kEjected);
}

TEST(TagLimitsTest, ListTheTagsThatAServerTemporarilyCannotServe) {
  const TagSet own = {"invoice"};
  TagLimits limits;
  EXPECT_EQ(limits.For("order", own, kNow), ServerHealth::kHealthy);
  limits.NotReady(kLater);
  EXPECT_EQ(limits.For("order", own, kNow), ServerHealth::kEjected);
  EXPECT_EQ(limits.For("invoice", own, kNow), ServerHealth::kHealthy) << "it needs no machine id";
  EXPECT_EQ(limits.For("order", own, kLater), ServerHealth::kHealthy);
  limits.StoreDown("invoice", kLater);
  EXPECT_EQ(limits.For("invoice", own, kNow), ServerHealth::kEjected);
  limits.Closed("invoice", kLater + kLater);
  EXPECT_EQ(limits.For("invoice", own, kLater), ServerHealth::kDraining);
  EXPECT_EQ(limits.For("order", own, kLater), ServerHealth::kHealthy);
  limits.Listed(/*unready=*/true);
  EXPECT_EQ(limits.For("invoice", own, kLater), ServerHealth::kHealthy);
  EXPECT_EQ(limits.For("order", own, kLater), ServerHealth::kEjected);
  limits.Listed(/*unready=*/false);
  EXPECT_EQ(limits.For("order", own, kLater), ServerHealth::kHealthy);
  limits.Closed("invoice", kLater + kLater);
  limits.Closed("order", kLater + kLater);
  limits.Reopen("invoice", kLater);
  EXPECT_EQ(limits.For("invoice", own, kLater), ServerHealth::kHealthy);
  EXPECT_EQ(limits.For("order", own, kLater), ServerHealth::kDraining);
}

}  // namespace
}  // namespace firn::client
