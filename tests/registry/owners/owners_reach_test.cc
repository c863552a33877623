#include <gmock/gmock.h>

#include "registry/owners/owners.h"
#include "tests/registry/owners/owners_fixture.h"

namespace firn {
namespace {

using ::testing::ElementsAre;

// The server a_ owns all partitions, and b_ renews a beat.
class OwnersReachTest : public OwnersFixture {
 protected:
  void SetUp() override {
    MakePartitions();
    Pass(kStart, {&a_});
    Pass(kStart, {&a_, &b_});
    ASSERT_EQ(a_.Owned(), 8);
  }
};

TEST_F(OwnersReachTest, GivesUpIfMostOthersCannotReachIt) {
  b_.owners.Report("10.0.0.9:7609,10.0.0.1:7609");
  Pass(kWindow * 3 / 2, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_THAT(a_.owners.listed_by(), ElementsAre("10.0.0.2:7609"));
  EXPECT_EQ(a_.owners.trouble(), "");
  Pass(kWindow * 3, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.owners.trouble(), "most other servers cannot reach this one");
}

TEST_F(OwnersReachTest, TakesPartitionsLaterThanOthersAfterwards) {
  b_.owners.Report("10.0.0.1:7609");
  Pass(kWindow * 4, {&a_, &b_});
  b_.owners.Report("");
  OwnersServer c(tree_, clock_, "10.0.0.3:7609", 3);
  Pass(kStart, {&a_, &b_, &c});
  b_.owners.HandOver();
  Pass(kWindow / 2, {&a_, &b_, &c});
  EXPECT_EQ(c.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersReachTest, TakesPartitionsAtOnceIfThereIsNoOtherServer) {
  b_.owners.Report("10.0.0.1:7609");
  Pass(kWindow * 4, {&a_, &b_});
  b_.owners.Report("");
  Pass(kWindow, {&a_, &b_});
  b_.owners.HandOver();
  Pass(kWindow / 2, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersReachTest, OneOfTwoOthersIsNotEnough) {
  OwnersServer c(tree_, clock_, "10.0.0.3:7609", 3);
  Pass(kWindow, {&a_, &b_, &c});
  b_.owners.Report("10.0.0.1:7609");
  Pass(kWindow * 4, {&a_, &b_, &c});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

// Otherwise two servers that have lost each other would take the partitions from each other.
TEST_F(OwnersReachTest, IgnoresServersThatItCannotReachItself) {
  b_.owners.Report("10.0.0.1:7609");
  a_.owners.Report("10.0.0.2:7609");
  Pass(kWindow * 4, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

}  // namespace
}  // namespace firn
