#include "client/fleet/fitness.h"

#include <ostream>
#include <string>

#include <gtest/gtest.h>

namespace firn::client {
namespace {

using Event = Fitness::Event;
using Member = Fitness::Member;
using Draining = Fitness::Draining;
using Quarantined = Fitness::Quarantined;
using Standing = Fitness::Standing;

constexpr Micros kNow{1'000'000};
constexpr Micros kLater = kNow + Fitness::kRecheck;

// A cell of the table: what the standing becomes.
struct Cell {
  Standing from;
  Event event;
  Standing to;
};

std::string NameOf(const Standing& standing) {
  constexpr const char* kNames[] = {"Member", "Draining", "Quarantined"};
  return kNames[standing.index()];
}

void PrintTo(const Cell& cell, std::ostream* out) {
  *out << NameOf(cell.from) << " hears event " << static_cast<int>(cell.event);
}

class FitnessTableTest : public testing::TestWithParam<Cell> {};

TEST_P(FitnessTableTest, HoldsTheTable) {
  const Cell& cell = GetParam();
  EXPECT_EQ(NameOf(Fitness::After(cell.from, cell.event, kNow)), NameOf(cell.to));
}

INSTANTIATE_TEST_SUITE_P(
    Table, FitnessTableTest,
    testing::Values(Cell{Member{}, Event::kListed, Member{}},
                    Cell{Member{}, Event::kSaysDraining, Draining{}},
                    Cell{Member{}, Event::kSpeaksNonsense, Quarantined{}},
                    Cell{Member{}, Event::kSeenStaying, Member{}},
                    Cell{Member{}, Event::kSeenDraining, Draining{}},
                    Cell{Draining{}, Event::kListed, Member{}},
                    Cell{Draining{}, Event::kSaysDraining, Draining{}},
                    Cell{Draining{}, Event::kSpeaksNonsense, Quarantined{}},
                    Cell{Draining{}, Event::kSeenStaying, Member{}},
                    Cell{Draining{}, Event::kSeenDraining, Draining{}},
                    Cell{Quarantined{}, Event::kListed, Member{}},
                    Cell{Quarantined{}, Event::kSaysDraining, Quarantined{}},
                    Cell{Quarantined{}, Event::kSpeaksNonsense, Quarantined{}},
                    Cell{Quarantined{}, Event::kSeenStaying, Quarantined{}},
                    Cell{Quarantined{}, Event::kSeenDraining, Quarantined{}},
                    Cell{Quarantined{.looked_at = true}, Event::kSeenStaying, Member{}},
                    Cell{Quarantined{.looked_at = true}, Event::kSeenDraining, Draining{}}));

TEST(FitnessTest, LooksOnceAtOneThatOnlyARefusalSaysIsDraining) {
  Fitness fitness;
  EXPECT_FALSE(fitness.TakeLook(true, kNow));
  EXPECT_TRUE(fitness.Hear(Event::kSaysDraining, kNow));
  EXPECT_FALSE(fitness.Hear(Event::kSaysDraining, kNow)) << "it is so already";
  EXPECT_TRUE(fitness.TakeLook(true, kNow));
  EXPECT_FALSE(fitness.TakeLook(true, kNow));
  EXPECT_FALSE(fitness.TakeLook(true, kLater)) << "a newer list will tell";
  EXPECT_TRUE(fitness.TakeLook(false, kLater));
  EXPECT_FALSE(fitness.TakeLook(false, kLater));
}

TEST(FitnessTest, EndsAQuarantineByALookOnlyWhereNoNewerListComes) {
  for (const bool lists_change : {true, false}) {
    Fitness fitness;
    fitness.Hear(Event::kSpeaksNonsense, kNow);
    EXPECT_FALSE(fitness.TakeLook(lists_change, kLater - Micros(1)));
    EXPECT_EQ(fitness.TakeLook(lists_change, kLater), !lists_change);
    fitness.Hear(Event::kSeenStaying, kLater);
    EXPECT_EQ(fitness.quarantined(), lists_change);
  }
}

TEST(FitnessTest, ForgetsALookWhenThereIsNonsenseAgain) {
  Fitness fitness;
  fitness.Hear(Event::kSpeaksNonsense, kNow);
  EXPECT_TRUE(fitness.TakeLook(false, kLater));
  fitness.Hear(Event::kSpeaksNonsense, kLater);
  fitness.Hear(Event::kSeenStaying, kLater);
  EXPECT_TRUE(fitness.quarantined());
}

TEST(FitnessTest, KeepsItsRestWhateverItsStanding) {
  Fitness fitness;
  SeededEntropy entropy(1);
  fitness.health.Failed(3);
  fitness.health.Rest(kNow, entropy);
  fitness.Hear(Event::kSaysDraining, kNow);
  EXPECT_EQ(fitness.For("order", true, {}, kNow), ServerFitness::kDraining);
  fitness.Hear(Event::kListed, kNow);
  EXPECT_EQ(fitness.For("order", true, {}, kNow), ServerFitness::kResting);
}

TEST(FitnessTest, SaysWhatItCannotDoForAWhile) {
  Fitness fitness;
  fitness.NotReady(kLater);
  EXPECT_EQ(fitness.For("order", true, {}, kNow), ServerFitness::kResting);
  EXPECT_EQ(fitness.For("order", false, {}, kNow), ServerFitness::kFit);
  EXPECT_EQ(fitness.For("order", true, {}, kLater), ServerFitness::kFit);
  fitness.StoreDown("invoice", kLater);
  EXPECT_EQ(fitness.For("invoice", false, {}, kNow), ServerFitness::kResting);
  fitness.Closed("invoice", kLater + kLater);
  EXPECT_EQ(fitness.For("invoice", false, {}, kLater), ServerFitness::kDraining);
  EXPECT_EQ(fitness.For("order", true, {}, kLater), ServerFitness::kFit);
  fitness.Hear(Event::kListed, kLater);
  EXPECT_EQ(fitness.For("invoice", false, {}, kLater), ServerFitness::kFit);
}

}  // namespace
}  // namespace firn::client
