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

}  // namespace
}  // namespace firn
