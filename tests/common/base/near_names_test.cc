#include "common/base/near_names.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

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

// Returns the distance, computed from its definition.
size_t DistanceOf(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return std::max(a.size(), b.size());
  const size_t changed = DistanceOf(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
  return std::min({changed, DistanceOf(a.substr(1), b) + 1, DistanceOf(a, b.substr(1)) + 1});
}

TEST(NearNames, FindsExactlyTheNamesWithinTheDistance) {
  std::vector<std::string> names;
  for (int i = 1; i < 3 * 3 * 3 * 3 * 3; ++i) {
    std::string& name = names.emplace_back();
    for (int rest = i; rest > 0; rest /= 3) name += static_cast<char>('a' + rest % 3);
  }
  for (const std::string& name : names) {
    for (const std::string& other : names) {
      const std::string_view known[] = {other};
      const bool begins = name.starts_with(other) || other.starts_with(name);
      ASSERT_EQ(!NearNames(name, known, 1).empty(), begins || DistanceOf(name, other) <= 2)
          << name << " and " << other;
    }
  }
}

TEST(NearNames, ComparesOnlyTheBeginningsOfLongNames) {
  const std::string known = std::string(40, 'a') + "-eu";
  const std::string_view all[] = {known};
  EXPECT_THAT(NearNames(known.substr(0, 40), all, 3), ElementsAre(known));
  EXPECT_THAT(NearNames(known.substr(1), all, 3), IsEmpty());
}

}  // namespace
}  // namespace firn
