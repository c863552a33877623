#include "common/tag/numbers_left.h"

#include <gmock/gmock.h>

namespace firn {
namespace {

using ::testing::HasSubstr;

constexpr WallMs kNow{1'750'000'000'000};  // 2025-06-15

TagDefinition Segment(int64_t high, int64_t width = 0) {
  TagDefinition tag{.name = "order", .strategy = "segment", .high = high};
  if (width > 0) tag.plugins = {"obfuscate"};
  tag.obfuscate_width = width;
  return tag;
}

TEST(NumbersLeftTest, NumbersEndWithTheWidthOrWith63Bits) {
  EXPECT_EQ(NumbersEnd(Segment(1)), INT64_MAX);
  EXPECT_EQ(NumbersEnd(Segment(1, 8)), 100'000'000);
  EXPECT_EQ(NumbersEnd(Segment(1, 18)), 1'000'000'000'000'000'000);
  EXPECT_EQ(NumbersEnd(Segment(1, 19)), INT64_MAX);
}

TEST(NumbersLeftTest, NoNumberIsLeftAtTheEnd) {
  EXPECT_TRUE(CheckNumbersLeft(Segment(1, 8), 99'999'999).ok());
  const Status none = CheckNumbersLeft(Segment(1, 8), 100'000'000);
  EXPECT_EQ(none.code(), Code::kExhausted);
  EXPECT_THAT(none.message(), HasSubstr("ended at 99999999"));
  EXPECT_THAT(none.message(), HasSubstr("; create a tag with a larger obfuscate.width"));
}

TEST(NumbersLeftTest, NotesATagNearItsEndAndOneAtIt) {
  EXPECT_FALSE(NoteNumbersLeft(Segment(1), kNow));
  EXPECT_FALSE(NoteNumbersLeft(Segment(90'000'000, 8), kNow));
  const auto few = NoteNumbersLeft(Segment(90'000'001, 8), kNow);
  ASSERT_TRUE(few);
  EXPECT_FALSE(few->none);
  EXPECT_EQ(few->what, "tag 'order' has 9999999 numbers left, up to 99999999");
  ASSERT_TRUE(NoteNumbersLeft(Segment(200'001'001, 8), kNow));
  EXPECT_TRUE(NoteNumbersLeft(Segment(200'001'001, 8), kNow)->none);
  TagDefinition off = Segment(200'001'001, 8);
  off.disabled = true;
  EXPECT_FALSE(NoteNumbersLeft(off, kNow));
}

TEST(NumbersLeftTest, NotesADatedTagThatHasUsedUpItsPeriod) {
  TagDefinition tag{.name = "bill", .strategy = "dated"};
  tag.digits = 3;
  tag.high = 20250615999;
  EXPECT_FALSE(NoteNumbersLeft(tag, kNow)) << "one is left";
  tag.high = 20250616000;
  ASSERT_TRUE(NoteNumbersLeft(tag, kNow));
  EXPECT_THAT(NoteNumbersLeft(tag, kNow)->what, HasSubstr("the numbers of 20250615 are used up"));
  EXPECT_THAT(NoteNumbersLeft(tag, kNow)->fix, HasSubstr("wait for the next day"));
  EXPECT_FALSE(NoteNumbersLeft(tag, kNow + std::chrono::days(1)));
}

}  // namespace
}  // namespace firn
