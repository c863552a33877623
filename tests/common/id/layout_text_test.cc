#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/id/layout.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

TEST(LayoutTextTest, ReadsEveryBuiltInLayoutByItsName) {
  for (const BuiltInLayouts::Named& built_in : kBuiltInLayouts) {
    const Result<Layout> layout = Layout::Parse(built_in.name);
    ASSERT_TRUE(layout.ok()) << built_in.name;
    EXPECT_EQ(*layout, built_in.layout);
    EXPECT_EQ(layout->text(), built_in.name);
  }
}

TEST(LayoutTextTest, CanonicalTextIsReadBack) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"time:31s machine:10 sequence:22 epoch:2024-01-01",
       "time:31s machine:10 sequence:22 epoch:2024-01-01"},
      {"epoch:1704067200000\ttime:31@1s   machine:10\nsequence:22",
       "time:31s machine:10 sequence:22 epoch:2024-01-01"},
      {"time:39@10ms machine:8 sequence:16", "time:39@10ms machine:8 sequence:16 epoch:2024-01-01"},
      {"time:30@2s machine:8 sequence:16", "time:30@2000ms machine:8 sequence:16 epoch:2024-01-01"},
      {"time:41 sequence:12 machine:10 epoch:2010-11-04T02:42:54.657+01:00",
       "time:41ms sequence:12 machine:10 epoch:2010-11-04T01:42:54.657Z"},
      {"zero:3=0 time:41 machine:10 zero:0", ""},
      {"version:1 type:1=1 method:2=3 time:40 machine:10 sequence:10",
       "version:1=0 type:1=1 method:2=3 time:40ms machine:10 sequence:10 epoch:2024-01-01"},
      {"time:41 machine:10 sequence:12", "firn"},
      {"zero:1 time:41 machine:10 sequence:12 epoch:1288834974657", "twitter"},
  };
  for (const auto& [given, canonical] : cases) {
    const Result<Layout> layout = Layout::Parse(given);
    if (canonical.empty()) {
      EXPECT_FALSE(layout.ok()) << given;
      continue;
    }
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_EQ(layout->text(), canonical);
    EXPECT_EQ(*Layout::Parse(layout->text()), *layout);
  }
}

TEST(LayoutTextTest, NamesEveryFaultAtOnce) {
  const Status status =
      Layout::Parse("time:x time:3 machine:11 flavour:3 method:2=4 epoch:1969-12-31").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  for (const char* fault :
       {"'time:x': a width", "'time:3': the field is given twice", "machine has 11 bits",
        "'flavour:3' is neither", "'method:2=4': the value is not in 0..3", "no sequence",
        "1970 to 2099"}) {
    EXPECT_THAT(status.message(), HasSubstr(fault));
  }
}

TEST(LayoutTextTest, RefusesImpossibleLayouts) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"", "neither the name"},
      {"snow", "neither the name"},
      {"machine:10 sequence:12", "no time field"},
      {"time:41 sequence:12", "no machine field"},
      {"time:41 machine:10", "no sequence field"},
      {"time:0 machine:10 sequence:12", "a width is"},
      {"time:-1 machine:10 sequence:12", "a width is"},
      {"time:+41 machine:10 sequence:12", "a width is"},
      {"time: machine:10 sequence:12", "a width is"},
      {"time:41 machine:65 sequence:12", "a width is"},
      {"time:41 machine:99999999999999999999 sequence:12", "a width is"},
      {"time:41 machine:10 sequence:12=3", "only const fields"},
      {"time:41=1 machine:10 sequence:12", "only const fields"},
      {"time:41 machine:10 sequence:14", "65 bits in all"},
      {"time:42 machine:10 sequence:12", "the sign"},
      {"method:1 time:41 machine:10 sequence:12", "the sign"},
      {"zero:1=1 time:41 machine:10 sequence:11", "zero holds 0"},
      {"version:1=2 time:41 machine:10 sequence:11", "not in 0..1"},
      {"version:1= time:41 machine:10 sequence:11", "not in 0..1"},
      {"time:41 time:41 machine:10 sequence:11", "twice"},
      {"time:41 machine:10 sequence:12 epoch:1 epoch:1", "epoch is given twice"},
      {"time:41 machine:10 sequence:12 epoch:2100-01-01", "1970 to 2099"},
      {"time:41 machine:10 sequence:12 epoch:99999999999999999999", "an epoch is"},
      {"time:41 machine:10 sequence:12 epoch:2023-02-29", "an epoch is"},
      {"time:41 machine:10 sequence:12 epoch:", "an epoch is"},
      {"time:41 machine:10 sequence:12 epoch:-5", "an epoch is"},
      {"time:48 machine:4 sequence:4", "beyond the year 9999"},
      {"time:62 machine:1 sequence:1", "beyond the year 9999"},
      {"time:30@0ms machine:10 sequence:12", "a tick lasts"},
      {"time:30@3601s machine:10 sequence:12", "a tick lasts"},
      {"time:30@9223372036854775807s machine:10 sequence:12", "a tick lasts"},
      {"time:30@10 machine:10 sequence:12", "a tick is"},
      {"time:30@ machine:10 sequence:12", "a tick is"},
      {"time:30s@10ms machine:10 sequence:12", "a width is"},
      {"time:41 machine:11 sequence:11", "machine has 11 bits"},
      {"Time:41 machine:10 sequence:11", "neither a field"},
      {"time:41 machine:10 sequence:12 :", "neither a field"},
  };
  for (const auto& [text, fault] : cases) {
    const Result<Layout> layout = Layout::Parse(text);
    ASSERT_FALSE(layout.ok()) << text;
    EXPECT_EQ(layout.code(), Code::kInvalid);
    EXPECT_THAT(layout.status().message(), HasSubstr(fault)) << text;
  }
}

TEST(LayoutTextTest, RefusesTextBeyondItsCap) {
  const std::string text = "time:41 machine:10 sequence:12" + std::string(300, ' ');
  EXPECT_THAT(Layout::Parse(text).status().message(), HasSubstr("at most 256"));
}

}  // namespace
}  // namespace firn
