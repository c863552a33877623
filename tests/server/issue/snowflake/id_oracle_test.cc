#include "tests/server/issue/snowflake/id_oracle.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

constexpr Tick kClaimed{1'000};

int64_t Id(int64_t tick, uint64_t sequence, uint32_t machine = 1) {
  return Layout::Firn().Pack({Tick(tick), MachineId(machine), sequence}).value();
}

// An oracle after one claim of machine 1 for ticks 1000 to 1009, closed at `last`.
IdOracle Oracle(Tick last, std::vector<int64_t> ids) {
  Claim claim(Layout::Firn(), MachineId(1), Layout::Firn().StartOf(kClaimed));
  claim.ExtendTo(Layout::Firn().StartOf(kClaimed + 10));
  IdOracle oracle;
  oracle.Closed(claim, last);
  oracle.Saw(std::move(ids));
  return oracle;
}

TEST(IdOracle, AcceptsCorrectIds) {
  EXPECT_EQ(Oracle(Tick(1'001), {Id(1'000, 5), Id(1'001, 0)}).Judge(), std::nullopt);
}

TEST(IdOracle, DetectsAnIdIssuedTwice) {
  IdOracle oracle = Oracle(Tick(1'000), {Id(1'000, 5)});
  oracle.Saw({Id(1'000, 5)});
  EXPECT_NE(oracle.Judge(), std::nullopt);
}

TEST(IdOracle, DetectsAnIdOutsideItsClaim) {
  EXPECT_NE(Oracle(Tick(999), {Id(999, 0)}).Judge(), std::nullopt);
  EXPECT_NE(Oracle(Tick(1'010), {Id(1'010, 0)}).Judge(), std::nullopt);
  EXPECT_NE(Oracle(Tick(1'000), {Id(1'000, 0, 2)}).Judge(), std::nullopt);
}

TEST(IdOracle, DetectsAWrongLastId) {
  EXPECT_NE(Oracle(Tick(1'000), {Id(1'000, 0), Id(1'001, 0)}).Judge(), std::nullopt);
  EXPECT_NE(Oracle(Tick(1'002), {Id(1'000, 0), Id(1'001, 0)}).Judge(), std::nullopt);
}

TEST(IdOracle, DetectsIdsThatDoNotRise) {
  EXPECT_NE(Oracle(Tick(1'001), {Id(1'001, 0), Id(1'000, 0)}).Judge(), std::nullopt);
}

}  // namespace
}  // namespace firn
