#include <string>
#include <tuple>

#include <gtest/gtest.h>

#include "tests/server/issue/snowflake/sequence_suite.h"

namespace firn {
namespace {

constexpr uint64_t kSeed = 7;

SequencerMaker Product(SequencerKind kind) {
  return [kind](std::shared_ptr<const Claim> claim, SequenceStart start, ForkCells::Cell& cell) {
    return MakeSequencer({kind, start}, std::move(claim), cell, kSeed);
  };
}

using Param = std::tuple<SequencerKind, SequenceCheck>;

class SequencerContract : public testing::TestWithParam<Param> {};

TEST_P(SequencerContract, Holds) {
  const auto& [kind, check] = GetParam();
  EXPECT_EQ(check.run(Product(kind)), std::nullopt);
}

std::string Name(const testing::TestParamInfo<Param>& info) {
  static constexpr const char* kKinds[] = {"Atomic", "Mutex", "Spin"};
  return std::string(kKinds[static_cast<size_t>(std::get<0>(info.param))]) + "_" +
         std::get<1>(info.param).name;
}

INSTANTIATE_TEST_SUITE_P(AllKinds, SequencerContract,
                         testing::Combine(testing::Values(SequencerKind::kAtomic,
                                                          SequencerKind::kMutex,
                                                          SequencerKind::kSpin),
                                          testing::ValuesIn(SequenceChecks())),
                         Name);

TEST(SequencerNames, AreTheValuesOfTheFlags) {
  for (const auto kind : {SequencerKind::kAtomic, SequencerKind::kMutex, SequencerKind::kSpin}) {
    EXPECT_EQ(ParseSequencerKind(SequencerKindName(kind)), kind);
  }
  EXPECT_EQ(ParseSequencerKind("Spin"), std::nullopt);
  EXPECT_EQ(ParseSequenceStart("carry"), SequenceStart::kCarry);
  EXPECT_EQ(ParseSequenceStart(""), std::nullopt);
}

}  // namespace
}  // namespace firn
