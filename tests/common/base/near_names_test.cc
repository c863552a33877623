#include "common/base/near_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace firn {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::string_view kKnown[] = {"order", "order-eu", "user", "invoice"};

TEST(NearNames, FindsOmittedInsertedAndChangedLetters) {
  EXPECT_THAT(NearNames("oder", kKnown, 1), ElementsAre("order"));
  EXPECT_THAT(NearNames("orrder", kKnown, 1), ElementsAre("order"));
  EXPECT_THAT(NearNames("onder", kKnown, 1), ElementsAre("order"));
}

TEST(NearNames, FindsBeginnings) {
  EXPECT_THAT(NearNames("inv", kKnown, 3), ElementsAre("invoice"));
}

TEST(NearNames, ReturnsTheNearestFirstUpToTheLimit) {
  EXPECT_THAT(NearNames("order-e", kKnown, 2), ElementsAre("order-eu", "order"));
  EXPECT_THAT(NearNames("order-e", kKnown, 1), ElementsAre("order-eu"));
}

TEST(NearNames, FindsNothingForDistantNames) {
  EXPECT_THAT(NearNames("zzzzzzzz", kKnown, 3), IsEmpty());
  EXPECT_THAT(NearNames("", kKnown, 3), IsEmpty());
  EXPECT_THAT(NearNames(std::string(10'000, 'o'), kKnown, 3), IsEmpty());
}

TEST(NearNames, SuggestsTheNearestName) {
  EXPECT_EQ(DidYouMean("oder", kKnown), "; did you mean 'order'?");
  EXPECT_EQ(DidYouMean("something else", kKnown), "");
}

TEST(NearNames, ComparesOnlyTheBeginningsOfLongNames) {
  const std::string known = std::string(40, 'a') + "-eu";
  const std::string_view all[] = {known};
  EXPECT_THAT(NearNames(known.substr(0, 40), all, 3), ElementsAre(known));
  EXPECT_THAT(NearNames(known.substr(1), all, 3), IsEmpty());
}

}  // namespace
}  // namespace firn
