#include "common/tag/obfuscated_end.h"

#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TagDefinition Obfuscated(int64_t width) {
  TagDefinition tag{.name = "order", .strategy = "snowflake", .plugins = {"obfuscate"}};
  tag.obfuscate_width = width;
  return tag;
}

WallMs EndOf(int64_t width, const Layout& layout = Layout::Firn()) {
  return ObfuscatedEnd(Obfuscated(width), layout).value_or(WallMs());
}

TEST(ObfuscatedEndTest, IsWhenIdsOfTheLargestMachineIdOutgrowTheWidth) {
  const Layout& layout = Layout::Firn();
  const auto largest = [&](WallMs t) {
    return *layout.Pack({.tick = layout.TickAt(t), .machine = MachineId(1023), .sequence = 4095});
  };
  for (const auto& [width, limit] :
       {std::pair{17, 100'000'000'000'000'000}, std::pair{18, 1'000'000'000'000'000'000}}) {
    const WallMs end = EndOf(width);
    EXPECT_GE(largest(end), limit) << width;
    EXPECT_LT(largest(end - kMs), limit) << width;
  }
  EXPECT_EQ(FormatRfc3339(EndOf(18)).substr(0, 10), "2031-07-22");
}

TEST(ObfuscatedEndTest, OfWidth19IsTheLayoutsEnd) {
  EXPECT_EQ(EndOf(19), Layout::Firn().end());
  EXPECT_EQ(EndOf(18, Layout::JsSafe()), Layout::JsSafe().end()) << "its ids have 53 bits";
}

// With the machine id above the time even the first ids are too large.
TEST(ObfuscatedEndTest, CountsFieldsAboveTheTime) {
  const Layout layout = *Layout::Parse("machine:10 time:41 sequence:12");
  EXPECT_EQ(EndOf(18, layout), layout.epoch());
}

TEST(ObfuscatedEndTest, OtherTagsHaveNoEnd) {
  TagDefinition tag = Obfuscated(18);
  tag.strategy = "segment";
  EXPECT_EQ(ObfuscatedEnd(tag, Layout::Firn()), std::nullopt);
  tag = Obfuscated(18);
  tag.plugins = {"rate"};
  EXPECT_EQ(ObfuscatedEnd(tag, Layout::Firn()), std::nullopt);
}

TEST(ObfuscatedEndTest, RefusesATagThatEndsWithinAYearAndNotesOneThatEndsWithinTen) {
  const Layout& layout = Layout::Firn();
  const WallMs end = EndOf(18);
  const TagDefinition tag = Obfuscated(18);
  const auto check = [&](WallMs now) { return CheckObfuscatedEnd(tag, layout, now); };
  const auto note = [&](WallMs now) { return ObfuscatedEndNote(tag, layout, now); };
  EXPECT_EQ(check(end - kObfuscatedLeast), Status());
  EXPECT_THAT(check(end - kObfuscatedLeast + kMs).message(), HasSubstr("from 2031-07-22"));
  EXPECT_THAT(check(end).message(), HasSubstr("already; use obfuscate.width=19"));
  EXPECT_THAT(note(end - kObfuscatedWarn), IsEmpty());
  EXPECT_THAT(note(end - kObfuscatedWarn + kMs), HasSubstr("from 2031-07-22"));
  EXPECT_THAT(note(end), HasSubstr("already"));
  EXPECT_EQ(CheckObfuscatedEnd(Obfuscated(19), layout, layout.end()), Status());
  EXPECT_THAT(ObfuscatedEndNote(Obfuscated(19), layout, layout.end() - kADay), IsEmpty());
}

}  // namespace
}  // namespace firn
