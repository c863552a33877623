#include "common/tag/tag_diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fuzz/random_tag.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

TagDefinition Segment(std::string name, int64_t step = 1000, int64_t high = 0) {
  TagDefinition tag{.name = std::move(name), .strategy = "segment"};
  tag.step = step;
  tag.high = high;
  return tag;
}

TEST(TagDiffTest, ShowsTheChangesOfAnApply) {
  TagDefinition bill = Segment("bill", 1000, 50);
  TagDefinition order = Segment("order", 2000, 7000);
  order.plugins = {"geo"};
  order.options["geo.region"] = "eu";
  TagDefinition changed_bill = bill;
  changed_bill.text = "B{id}";
  const auto changes = DiffTags(
      {bill, Segment("gone"), Segment("order", 1000, 7000), Segment("same", 1, 9)},
      {changed_bill, order, Segment("same", 1), {.name = "user", .strategy = "snowflake"}});
  EXPECT_EQ(DiffText(changes),
            "! bill: refused\n"
            "    text: (none) -> B{id}\n"
            "    tag \"bill\": text: fixed once an id may have been issued (\"\", not \"B{id}\"); "
            "create another tag\n"
            "~ order\n"
            "    step: 1000 -> 2000\n"
            "    plugins: (none) -> geo\n"
            "    geo.region: (none) -> eu\n"
            "+ user: new\n"
            "    strategy: snowflake\n"
            "1 unchanged\n"
            "1 not mentioned and left as they are\n");
}

TEST(TagDiffTest, CountsNoOtherTagsIfThereAreNone) {
  EXPECT_EQ(DiffText(DiffTags({}, {{.name = "user", .strategy = "snowflake"}})),
            "+ user: new\n    strategy: snowflake\n");
}

TEST(TagDiffTest, TheLedgerIsNeverPartOfADiff) {
  EXPECT_THAT(DiffTags({Segment("a", 1, 77)}, {Segment("a", 1, 0)}),
              ElementsAre(testing::Field(&TagChange::kind, TagChange::Kind::kSame)));
  EXPECT_EQ(WithLedgerOf(Segment("a", 1, 77), Segment("a", 2)).high, 77);
}

TEST(TagDiffTest, ASetHasNoDifferenceToItself) {
  SeededEntropy entropy(3);
  for (int i = 0; i < 300; ++i) {
    const TagDefinition tag = RandomTag(entropy);
    const auto changes = DiffTags({tag}, {tag});
    ASSERT_THAT(changes, SizeIs(1));
    EXPECT_EQ(changes[0].kind, TagChange::Kind::kSame);
  }
}

TEST(TagDiffTest, RefusesAnInvalidNewTag) {
  const auto changes = DiffTags({}, {Segment("a", 0)});
  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_THAT(changes[0].status.message(), HasSubstr("step: 0 is not within"));
}

}  // namespace
}  // namespace firn
