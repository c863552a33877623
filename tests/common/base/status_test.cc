#include "common/base/status.h"

#include <memory>

#include <gtest/gtest.h>

namespace firn {
namespace {

Result<int> Half(int n) {
  if (n % 2 != 0) return Invalid("odd");
  return n / 2;
}

Result<int> Quarter(int n) {
  FIRN_ASSIGN(const int half, Half(n));
  return Half(half);
}

Status CheckQuarter(int n) {
  FIRN_TRY(Quarter(n).status());
  return {};
}

TEST(StatusTest, ContextIsPrefixed) {
  EXPECT_EQ(Invalid("b").WithContext("a").message(), "a: b");
  EXPECT_EQ(Status().WithContext("a"), Status());
}

TEST(StatusTest, NamesItsCode) {
  EXPECT_EQ(Unknown("no answer").ToString(), "unknown outcome: no answer");
  EXPECT_EQ(Status().ToString(), "ok");
}

TEST(ResultTest, TryAndAssignReturnFailures) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Quarter(6).status(), Invalid("odd"));
  EXPECT_TRUE(CheckQuarter(8).ok());
  EXPECT_EQ(CheckQuarter(3), Invalid("odd"));
}

TEST(ResultTest, HoldsMoveOnlyValues) {
  Result<std::unique_ptr<int>> made(std::make_unique<int>(7));
  EXPECT_EQ(*std::move(made).value(), 7);
}

TEST(ResultDeathTest, AccessToAnAbsentValueEndsTheProcessWithTheReason) {
  EXPECT_DEATH(static_cast<void>(Half(3).value()), "invalid: odd");
}

}  // namespace
}  // namespace firn
