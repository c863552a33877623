#include "tests/support/fuzz/fuzz_mutator.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

namespace firn {
namespace {

std::vector<std::string> InputsOf(uint64_t seed, std::vector<std::string> corpus, int count) {
  SeededEntropy entropy(seed);
  FuzzMutator mutator(std::move(corpus), entropy);
  std::vector<std::string> inputs;
  for (int i = 0; i < count; ++i) inputs.push_back(mutator.Next());
  return inputs;
}

TEST(FuzzMutatorTest, TheSameSeedGivesTheSameInputs) {
  EXPECT_EQ(InputsOf(7, {"time:41", "seq"}, 500), InputsOf(7, {"time:41", "seq"}, 500));
  EXPECT_NE(InputsOf(7, {"time:41", "seq"}, 500), InputsOf(8, {"time:41", "seq"}, 500));
}

TEST(FuzzMutatorTest, InputsStayWithinTheSizeLimit) {
  for (const std::string& input : InputsOf(1, {std::string(FuzzMutator::kSizeMax, 'x')}, 500)) {
    EXPECT_LE(input.size(), FuzzMutator::kSizeMax);
  }
}

TEST(FuzzMutatorTest, AnEmptyCorpusStillGivesManyInputs) {
  const std::vector<std::string> inputs = InputsOf(1, {}, 500);
  EXPECT_GT(std::set(inputs.begin(), inputs.end()).size(), 100U);
}

TEST(FuzzMutatorTest, MostInputsKeepAPartOfTheCorpus) {
  const std::vector<std::string> inputs = InputsOf(1, {"machine:10 sequence:12"}, 500);
  const auto kept = std::count_if(inputs.begin(), inputs.end(), [](const std::string& input) {
    return input.find("sequ") != std::string::npos;
  });
  EXPECT_GT(kept, 150);
}

}  // namespace
}  // namespace firn
