#include "common/base/utf8.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(Utf8Test, AcceptsTheEdgesOfEveryLength) {
  for (const std::string_view text :
       {"", "a", "~", "\xC2\xA0", "\xDF\xBF", "\xE0\xA0\x80", "\xED\x9F\xBF", "\xEE\x80\x80",
        "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(IsPrintableUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8Test, RefusesInvalidCodePoints) {
  for (const std::string_view text :
       {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xC2", "\xC2\x41", "\xE0\x9F\xBF", "\xE2\x82",
        "\xED\xA0\x80", "\xED\xBF\xBF", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80",
        "\xFF", "a\xC3"}) {
    EXPECT_FALSE(IsPrintableUtf8(text)) << testing::PrintToString(text);
  }
}

TEST(Utf8Test, ControlCharactersAreNotPrintable) {
  for (int c = 0; c < 0x20; ++c) {
    EXPECT_FALSE(IsPrintableUtf8("a" + std::string(1, static_cast<char>(c)))) << c;
  }
  EXPECT_FALSE(IsPrintableUtf8("\x7F"));
  EXPECT_FALSE(IsPrintableUtf8("\xC2\x80"));
  EXPECT_FALSE(IsPrintableUtf8("\xC2\x9F"));
  EXPECT_TRUE(IsPrintableUtf8("\xC2\xA0 ~"));
}

TEST(Utf8Test, WritesUnprintableBytesAsHex) {
  EXPECT_EQ(ToPrintableUtf8("M\xC3\xBCller"), "M\xC3\xBCller");
  EXPECT_EQ(ToPrintableUtf8("a\xFF\x1B[2J\xC2\x85z"), "a\\xff\\x1b[2J\\xc2\\x85z");
}

}  // namespace
}  // namespace firn
