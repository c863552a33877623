// How ids spread over shards that are chosen by id modulo n, on a server with little load.

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/server/issue/snowflake/snowflake_rig.h"

namespace firn {
namespace {

struct Load {
  SequenceStart start;
  int64_t per_request;
};

// Pearson's statistic of `requests` calls at random moments of low load, over the shards id % n.
double ChiSquare(const Load& load, int64_t n, uint64_t seed) {
  constexpr int kRequests = 20'000;
  SnowflakeRig rig(Layout::Firn(), {}, {.sequencer = {.start = load.start}});
  rig.Hold(7, std::chrono::hours(24));
  SeededEntropy random(seed);
  std::vector<double> shards(static_cast<size_t>(n));
  for (int i = 0; i < kRequests; ++i) {
    rig.clock().Advance(Milliseconds(static_cast<int64_t>(1 + random.Below(40))));
    EXPECT_EQ(rig.Ask(load.per_request), Verdict::kIssued);
    rig.runs().ForEach([&](int64_t id) { ++shards[static_cast<size_t>(id % n)]; });
  }
  const double expected =
      static_cast<double>(kRequests * load.per_request) / static_cast<double>(n);
  double sum = 0;
  for (const double count : shards) sum += (count - expected) * (count - expected) / expected;
  return sum;
}

// The value that an even spread exceeds about once in a thousand times (Wilson and Hilferty). Ids
// of one request are consecutive, so their shards are not independent: the statistic of k ids a
// request varies as one of n/k shards, times k.
double Bound(int64_t n, int64_t per_request) {
  const double freedom =
      std::max(1.0, static_cast<double>(n) / static_cast<double>(per_request) - 1);
  const double part = 2 / (9 * freedom);
  const double root = 1 - part + 3.09 * std::sqrt(part);
  return static_cast<double>(per_request) * freedom * root * root * root;
}

class SequenceStarts : public testing::TestWithParam<int64_t> {};

TEST_P(SequenceStarts, RandomAndCarrySpreadEvenlyAtLowLoad) {
  constexpr uint64_t kSeed = 99;
  for (const SequenceStart start : {SequenceStart::kRandom, SequenceStart::kCarry}) {
    for (const int64_t per_request : {1, 2}) {
      SCOPED_TRACE(testing::Message() << "start " << static_cast<int>(start) << ", " << per_request
                                      << " a request, seed " << kSeed);
      EXPECT_LT(ChiSquare({start, per_request}, GetParam(), kSeed), Bound(GetParam(), per_request));
    }
  }
}

TEST_P(SequenceStarts, ZeroSpreadsUnevenlyAsDocumented) {
  EXPECT_GT(ChiSquare({SequenceStart::kZero, 1}, GetParam(), 99), 100 * Bound(GetParam(), 1));
}

INSTANTIATE_TEST_SUITE_P(Modulo, SequenceStarts, testing::Values(2, 10, 16, 256));

TEST(SequenceStart, RandomStartsLieInTheLowerHalfAndReachAllOfIt) {
  SnowflakeRig rig;
  rig.Hold();
  uint64_t lowest = 4096, highest = 0;
  for (int i = 0; i < 20'000; ++i) {
    rig.clock().Advance(Milliseconds(3));
    const uint64_t sequence = rig.One().sequence;
    if (i == 0) continue;  // a claim's first tick starts at zero
    lowest = std::min(lowest, sequence);
    highest = std::max(highest, sequence);
  }
  EXPECT_LT(lowest, 10u);
  EXPECT_GT(highest, 2037u);
  EXPECT_LT(highest, 2048u);
}

TEST(SequenceStart, DiffersBetweenClaims) {
  SnowflakeRig rig;
  std::vector<uint64_t> starts;
  for (uint32_t machine = 1; machine < 9; ++machine) {
    rig.Hold(machine);
    rig.One();
    rig.clock().Advance(Milliseconds(1));
    starts.push_back(rig.One().sequence);
  }
  std::sort(starts.begin(), starts.end());
  EXPECT_GT(std::unique(starts.begin(), starts.end()) - starts.begin(), 4);
}

}  // namespace
}  // namespace firn
