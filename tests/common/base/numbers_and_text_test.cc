// Tests Cat, the functions of ParseNumber, hexadecimal digits, and FNV-1a.

#include <cctype>
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"
#include "common/base/parse.h"

namespace firn {
namespace {

TEST(CatTest, ConcatenatesTextsCharactersAndNumbers) {
  const std::string text = "port";
  EXPECT_EQ(Cat("--", text, std::string_view(" is "), 1, '-', uint16_t{65535}, ": ", -7L),
            "--port is 1-65535: -7");
  EXPECT_EQ(Cat(), "");
  EXPECT_EQ(Cat(std::numeric_limits<int64_t>::min(), ' ', std::numeric_limits<uint64_t>::max()),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(Cat(std::string("a\0b", 3)).size(), 3u);
  static_assert(!std::constructible_from<CatPiece, bool>, "a reader would find a 1");
}

TEST(ParseTest, ReadsWholeNumbersAndNothingElse) {
  EXPECT_EQ(ParseNumber<int64_t>("-12"), -12);
  EXPECT_EQ(ParseNumber<uint32_t>("007"), 7u);
  EXPECT_EQ(ParseNumber<uint8_t>("ff", 16), 255);
  for (const char* no : {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "1e3", "256", "-1"}) {
    EXPECT_EQ(ParseNumber<uint8_t>(no), std::nullopt) << no;
  }
  EXPECT_EQ(ParseNumber<int64_t>("9223372036854775808"), std::nullopt);
  EXPECT_EQ(ParseNumber<int64_t>(std::string_view()), std::nullopt);
}

TEST(ParseTest, RefusesNumbersOutOfBounds) {
  EXPECT_EQ(ParseNumberWithin<int64_t>("3", 3, 5), 3);
  EXPECT_EQ(ParseNumberWithin<int64_t>("5", 3, 5), 5);
  EXPECT_EQ(ParseNumberWithin<int64_t>("2", 3, 5), std::nullopt);
  EXPECT_EQ(ParseNumberWithin<int64_t>("6", 3, 5), std::nullopt);
  EXPECT_EQ(ParseNumberWithin<int64_t>("6", 3), 6);
}

TEST(ParseTest, AnIndexHasOneSpelling) {
  EXPECT_EQ(ParseIndex<uint32_t>("0"), 0u);
  EXPECT_EQ(ParseIndex<uint32_t>("1023"), 1023u);
  for (const char* no : {"", "00", "07", "-0", "+7", "4294967296"}) {
    EXPECT_EQ(ParseIndex<uint32_t>(no), std::nullopt) << no;
  }
}

TEST(HexTest, ReadsWhatItWrites) {
  EXPECT_EQ(ToHex(std::string_view("\x00\x7f\xff", 3)), "007fff");
  EXPECT_EQ(ToHex(uint64_t{0x0123456789abcdef}), "0123456789abcdef");
  EXPECT_EQ(ToHex(uint64_t{1}), "0000000000000001");
  for (int c = -128; c < 128; ++c) {
    const auto digit = HexDigit(static_cast<char>(c));
    const bool is_one = isxdigit(c & 0xff) != 0;
    ASSERT_EQ(digit.has_value(), is_one) << c;
    const std::string text(1, static_cast<char>(c));
    EXPECT_EQ(digit.value_or(0), is_one ? std::stoi(text, nullptr, 16) : 0);
  }
}

// The values are examples of the algorithm's authors.
TEST(FnvTest, EqualsTheHashInFiles) {
  static_assert(Fnv1a("") == 0xcbf29ce484222325);
  static_assert(Fnv1a("a") == 0xaf63dc4c8601ec8c);
  static_assert(Fnv1a("foobar") == 0x85944171f73967e8);
  EXPECT_EQ(Fnv1a("bar", Fnv1a("foo")), Fnv1a("foobar"));
}

}  // namespace
}  // namespace firn
