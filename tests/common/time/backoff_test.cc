#include "common/time/backoff.h"

#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace firn {
namespace {

constexpr Backoff::Options kOptions{Milliseconds(100), Milliseconds(3000)};

TEST(BackoffTest, DoublesUpToTheCapWithinItsUpperHalf) {
  SeededEntropy entropy(1);
  for (int round = 0; round < 500; ++round) {
    Backoff backoff(kOptions, entropy);
    for (const int64_t longest : {100, 200, 400, 800, 1600, 3000, 3000, 3000}) {
      const int64_t wait = backoff.Next().count();
      EXPECT_LE(wait, longest);
      EXPECT_GE(wait, longest / 2);
    }
  }
}

TEST(BackoffTest, FollowsACapThatChanges) {
  SeededEntropy entropy(1);
  Backoff backoff(kOptions, entropy);
  for (int i = 0; i < 10; ++i) backoff.Next();
  for (const auto& [cap, longest] :
       {std::pair(250, 250), {250, 250}, {1, 1}, {3000, 2}, {3000, 4}}) {
    const int64_t wait = backoff.Next(Milliseconds(cap)).count();
    EXPECT_LE(wait, longest);
    EXPECT_GE(wait, longest / 2);
  }
}

TEST(BackoffTest, SpreadsSimultaneousFailures) {
  SeededEntropy entropy(1);
  std::set<Milliseconds> waits;
  for (int i = 0; i < 200; ++i) waits.insert(Backoff(kOptions, entropy).Next());
  EXPECT_GT(waits.size(), 30u);
  EXPECT_EQ(*waits.begin(), Milliseconds(50));
  EXPECT_EQ(*waits.rbegin(), Milliseconds(100));
}

TEST(BackoffTest, BeginsAgainAfterASuccess) {
  SeededEntropy entropy(1);
  Backoff backoff(kOptions, entropy);
  for (int i = 0; i < 1000; ++i) backoff.Next();
  backoff.Reset();
  EXPECT_LE(backoff.Next(), Milliseconds(100));
}

TEST(BackoffTest, TheSameSeedGivesTheSameWaits) {
  const auto waits = [](uint64_t seed) {
    SeededEntropy entropy(seed);
    Backoff backoff(kOptions, entropy);
    std::vector<Milliseconds> all(10);
    for (Milliseconds& wait : all) wait = backoff.Next();
    return all;
  };
  EXPECT_EQ(waits(7), waits(7));
  EXPECT_NE(waits(7), waits(8));
}

TEST(BackoffTest, NeverWaitsZero) {
  SeededEntropy entropy(1);
  Backoff backoff({Milliseconds(1), Milliseconds(1)}, entropy);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(backoff.Next(), Milliseconds(1));
}

TEST(BackoffDeathTest, RefusesOptionsOutOfRange) {
  SeededEntropy entropy(1);
  EXPECT_DEATH(Backoff({Milliseconds(0), Milliseconds(1)}, entropy), "1 ms <= first");
  EXPECT_DEATH(Backoff({Milliseconds(2), Milliseconds(1)}, entropy), "first <= cap");
}

}  // namespace
}  // namespace firn
