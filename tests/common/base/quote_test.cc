#include "common/base/quote.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(QuoteTest, ShowsOnlyPrintableAscii) {
  EXPECT_EQ(Quoted("plain text"), "'plain text'");
  EXPECT_EQ(Quoted(""), "''");
  EXPECT_EQ(Quoted(std::string_view("\0\n\x1b[2J\x7fé", 9)), "'\\x00\\x0a\\x1b[2J\\x7f\\xc3\\xa9'");
}

TEST(QuoteTest, TruncatesLongTexts) {
  EXPECT_EQ(Quoted(std::string(64, 'a')), "'" + std::string(64, 'a') + "'");
  EXPECT_EQ(Quoted(std::string(65, 'a')), "'" + std::string(64, 'a') + "'...");
}

TEST(ShortenedTest, KeepsAMessageThatFits) {
  EXPECT_EQ(Shortened("store main: down; start it", 26), "store main: down; start it");
  EXPECT_EQ(Shortened("", 8), "");
}

TEST(ShortenedTest, LeavesOutTheMiddle) {
  EXPECT_EQ(Shortened("0123456789abcdefghij", 18), "01234...abcdefghij");
  for (size_t most = 8; most < 500; ++most) {
    EXPECT_EQ(Shortened(std::string(500, 'x'), most).size(), most);
  }
}

TEST(ShortenedTest, KeepsTheWholeRemedy) {
  const std::string remedy = "; " + std::string(220, 'r');
  const std::string message = "store main: db:5432: a; " + std::string(400, 'w') + remedy;
  const std::string shown = Shortened(message, 300);
  EXPECT_EQ(shown.size(), 300u);
  EXPECT_TRUE(shown.starts_with("store main: db:5432")) << shown;
  EXPECT_TRUE(shown.ends_with("..." + remedy)) << shown;
}

TEST(ShortenedTest, KeepsTheObjectBeforeALongRemedy) {
  const std::string shown = Shortened("store main; " + std::string(100, 'a') + "end", 50);
  EXPECT_EQ(shown, "store main;..." + std::string(33, 'a') + "end");
}

TEST(ShortenedTest, SplitsNoCharacter) {
  std::string message;
  for (int i = 0; i < 100; ++i) message += "\u20ac";
  for (size_t most = 8; most < 300; ++most) {
    const std::string shown = Shortened(message, most);
    EXPECT_LE(shown.size(), most);
    EXPECT_GE(shown.size() + 4, most);
    EXPECT_EQ((shown.size() - 3) % 3, 0u) << shown;
  }
}

}  // namespace
}  // namespace firn
