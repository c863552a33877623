// Requests for ranges that name another form than the tag's.

#include <gtest/gtest.h>

#include "tests/server/store/ledger_rig.h"

namespace firn {
namespace {

class LedgerFormTest : public testing::Test {
 protected:
  LedgerCluster cluster_;
  LedgerHost host_{cluster_};
  // The form that a host uses if it has not read the edit.
  const TagDefinition old_ = LedgerTag();
  void Redefine() {
    cluster_.Edit("order", [](TagNode& node) { node.tag.text = "{id:09}"; });
  }
};

TEST_F(LedgerFormTest, RefusesARangeForAnotherFormAndReportsTheRedefinition) {
  Redefine();
  EXPECT_EQ(host_.Extend(10, old_).code(), Code::kInvalid);
  EXPECT_EQ(host_.Cover({1, 11}, old_).code(), Code::kInvalid);
  EXPECT_EQ(host_.Begin(old_).code(), Code::kInvalid);
  EXPECT_EQ(cluster_.High("order"), 0);
  EXPECT_EQ(host_.redefined, std::vector<std::string>(3, "order"));
  TagDefinition now = old_;
  now.text = "{id:09}";
  EXPECT_EQ(*host_.Extend(10, now), (Range{1, 11}));
}

TEST_F(LedgerFormTest, DetectsAnEditBetweenReadAndSet) {
  ASSERT_TRUE(host_.Begin(old_).ok());  // caches the node before the edit
  Redefine();
  EXPECT_EQ(host_.Cover({1, 11}, old_).code(), Code::kInvalid);
  EXPECT_EQ(cluster_.High("order"), 0);
}

TEST_F(LedgerFormTest, AnEditThatKeepsTheFormDoesNotStopRanges) {
  cluster_.Edit("order", [](TagNode& node) {
    node.tag.step = 7;
    node.tag.plugins = {"rate"};
  });
  EXPECT_TRUE(host_.Extend(10, old_).ok());
  EXPECT_TRUE(host_.redefined.empty());
}

TEST_F(LedgerFormTest, GivesBackWithoutComparingForms) {
  ASSERT_TRUE(host_.Extend(10, old_).ok());
  Redefine();  // bypasses every rule
  EXPECT_TRUE(host_.GiveBack({6, 11}).ok());
  EXPECT_EQ(cluster_.High("order"), 6);
}

TEST_F(LedgerFormTest, NoRangeBeginsBeyondTheWidthOfAnObfuscatedTag) {
  TagDefinition tag = old_;
  tag.plugins = {"obfuscate"};
  tag.obfuscate_width = 6;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
  cluster_.Edit("order", [&](TagNode& node) {
    node.tag = tag;
    node.tag.high = 999'990;
  });
  EXPECT_EQ(*host_.Extend(20, tag), (Range{999'990, 1'000'000})) << "clipped";
  EXPECT_EQ(host_.Extend(20, tag).code(), Code::kExhausted);
  EXPECT_EQ(host_.Begin(tag).code(), Code::kExhausted) << "no store is asked";
  EXPECT_EQ(host_.Cover({1'000'000, 1'000'010}, tag).code(), Code::kExhausted);
  EXPECT_EQ(cluster_.High("order"), 1'000'000);
}

TEST_F(LedgerFormTest, RefusesRangesThatReachIdsOfUndefinedTags) {
  const int64_t first = cluster_.ServeUndefined(Layout::Firn().epoch() + Milliseconds(1));
  EXPECT_EQ(*host_.Extend(10), (Range{1, 11}));
  EXPECT_TRUE(host_.Cover({first - 20, first - 10}).ok());
  const Status beyond = host_.Cover({first - 5, first + 5});
  EXPECT_EQ(beyond.code(), Code::kInvalid);
  EXPECT_NE(beyond.message().find("undefined tags"), std::string::npos) << beyond;
  EXPECT_EQ(host_.Extend(11).code(), Code::kInvalid);
  EXPECT_EQ(cluster_.High("order"), first - 10);
  EXPECT_EQ(*host_.Extend(10), (Range{first - 10, first}));
  EXPECT_EQ(host_.Extend(1).code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn
