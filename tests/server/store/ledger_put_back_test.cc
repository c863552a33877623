// A ledger whose server was stopped while the registry's data were restored from a backup.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/store/ledger_rig.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

class LedgerPutBackTest : public testing::Test {
 protected:
  // The node of a tag with a ledger at `high`, as a state folder stores it.
  static TagNode Kept(int64_t high, int64_t returned = 0) {
    TagNode node{.tag = LedgerTag(), .returned = returned};
    node.tag.high = high;
    return node;
  }

  LedgerCluster cluster_;
};

TEST_F(LedgerPutBackTest, FreezesTheClusterInsteadOfTakingARangeBelowTheKeptLedger) {
  ASSERT_TRUE(LedgerHost(cluster_).Extend(10).ok());
  LedgerHost host(cluster_);
  host.ledger().Remember("order", Kept(101));
  EXPECT_FALSE(host.Extend(10).ok());
  EXPECT_TRUE(host.Until([&] { return cluster_.frozen(); }));
  EXPECT_EQ(cluster_.High("order"), 11);
}

// `firn tags delete` refuses a tag that has issued numbers, so the node was lost.
TEST_F(LedgerPutBackTest, FreezesTheClusterWhenTheNodeOfAKeptTagIsMissing) {
  cluster_.Erase("order");
  LedgerHost host(cluster_);
  host.ledger().Remember("order", Kept(101));
  host.ledger().Saw("order", std::nullopt);
  EXPECT_TRUE(host.Until([&] { return cluster_.frozen(); }));
}

TEST_F(LedgerPutBackTest, AReturnedTailIsNotALossForAKeptLedger) {
  {
    LedgerHost before(cluster_);
    ASSERT_TRUE(before.Extend(100).ok());
    ASSERT_TRUE(before.GiveBack({11, 101}).ok());
  }
  LedgerHost host(cluster_);
  host.ledger().Remember("order", Kept(101));
  EXPECT_EQ(*host.Extend(10), (Range{11, 21}));
  EXPECT_FALSE(cluster_.frozen());
}

TEST_F(LedgerPutBackTest, ContinuesIfTheLedgerWasRestoredAboveTheKeptOne) {
  cluster_.Edit("order", [](TagNode& node) { node.tag.high = 101; });
  LedgerHost host(cluster_);
  host.ledger().Remember("order", Kept(101, 5'000));
  EXPECT_EQ(*host.Extend(10), (Range{101, 111}));
}

}  // namespace
}  // namespace firn
