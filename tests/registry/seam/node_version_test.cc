#include "registry/seam/node_version.h"

#include <cstdint>

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(NodeVersion, WrapsAtThirtyTwoBits) {
  EXPECT_EQ(NextVersion(0), 1);
  EXPECT_EQ(NextVersion(INT32_MAX), INT32_MIN);
  EXPECT_EQ(NextVersion(INT32_MIN), INT32_MIN + 1);
  EXPECT_EQ(NextVersion(-2), -1);
  EXPECT_EQ(NextVersion(-1), 0);
}

TEST(NodeVersion, OlderMeansFewerThanTwoToThe31SetsAgo) {
  struct {
    int64_t version, than;
    bool older;
  } const cases[] = {
      {0, 0, false},
      {0, 1, true},
      {1, 0, false},
      {INT32_MAX, INT32_MIN, true},
      {INT32_MIN, INT32_MAX, false},
      {-2, 0, true},
      {1, -2, false},
      {INT32_MAX - 5, INT32_MIN + 5, true},
      {INT32_MIN, 0, true},
      {5, INT32_MAX, true},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(IsOlder(c.version, c.than), c.older) << c.version << " " << c.than;
  }
}

TEST(NodeVersion, FollowsIsOneSetLaterOrPastTheUnguardedOne) {
  EXPECT_TRUE(Follows(7, 8));
  EXPECT_FALSE(Follows(7, 7));
  EXPECT_FALSE(Follows(7, 9));
  EXPECT_TRUE(Follows(INT32_MAX, INT32_MIN));
  EXPECT_TRUE(Follows(-2, 0));
  EXPECT_TRUE(Follows(-2, 1));
  EXPECT_FALSE(Follows(-2, -1));
  EXPECT_FALSE(Follows(-1, 0)) << "the version before is unknown";
}

TEST(NodeVersion, ASetBecomesTwoIfOneWouldEndUnguarded) {
  std::vector<Write> writes{Write::Check("/", 3)};
  EXPECT_EQ(AddSet(writes, "/x", "data", 7), 1u);
  EXPECT_EQ(writes.size(), 2u);
  EXPECT_EQ(writes[1].version, 7);
  EXPECT_EQ(AddSet(writes, "/x", "data", -2), 3u);
  EXPECT_EQ(writes[2].version, -2);
  EXPECT_EQ(writes[3].version, Write::kAnyVersion);
  EXPECT_EQ(writes[3].data, "data");
}

}  // namespace
}  // namespace firn
