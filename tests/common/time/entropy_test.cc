#include "common/time/entropy.h"

#include <array>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace firn {
namespace {

// Returns given numbers.
class ScriptedEntropy final : public Entropy {
 public:
  explicit ScriptedEntropy(std::vector<uint64_t> numbers) : numbers_(std::move(numbers)) {}
  uint64_t Next() override { return numbers_.at(next_++); }

 private:
  const std::vector<uint64_t> numbers_;
  size_t next_ = 0;
};

// Compares with the first numbers of SplitMix64 as its author published it.
TEST(SeededEntropyTest, DrawsTheSameNumbersOnEveryMachine) {
  SeededEntropy entropy(0);
  EXPECT_EQ(entropy.Next(), 0xe220a8397b1dcdafu);
  EXPECT_EQ(entropy.Next(), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(entropy.Next(), 0x06c45d188009454fu);
}

TEST(EntropyTest, ChoosesEveryNumberBelow) {
  SeededEntropy entropy(7);
  std::array<int, 6> seen{};
  for (int i = 0; i < 6'000; ++i) ++seen.at(entropy.Below(6));
  for (const int count : seen) EXPECT_NEAR(count, 1'000, 150);
  EXPECT_EQ(entropy.Below(1), 0u);
}

// 2^64 is 1 more than a multiple of 3, so without a second draw the remainder 0 would be more
// likely.
TEST(EntropyTest, DrawsAgainInsteadOfPreferringLowNumbers) {
  ScriptedEntropy entropy({0, 5});
  EXPECT_EQ(entropy.Below(3), 2u);
}

TEST(SystemEntropyTest, DoesNotRepeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1'000; ++i) seen.insert(SystemEntropy().Next());
  EXPECT_EQ(seen.size(), 1'000u);
}

}  // namespace
}  // namespace firn
