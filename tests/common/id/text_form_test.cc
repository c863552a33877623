#include "common/id/text_form.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

constexpr Base kBases[] = {Base::kDecimal, Base::kBase62, Base::kBase36, Base::kCrockford32};

std::vector<int64_t> BoundaryIds() {
  std::vector<int64_t> ids = {0, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max()};
  const auto around = [&](uint64_t n) {
    for (const uint64_t near : {n - 1, n, n + 1}) {
      ids.push_back(static_cast<int64_t>(near));
      ids.push_back(static_cast<int64_t>(0 - near));
    }
  };
  for (int shift = 0; shift < 64; ++shift) around(uint64_t{1} << shift);
  for (const uint64_t radix : {10u, 32u, 36u, 62u}) {
    for (uint64_t power = 1; power <= UINT64_MAX / radix; power *= radix) around(power);
  }
  return ids;
}

std::string PositionIn(const Result<int64_t>& refused) {
  return refused.ok() ? "accepted" : refused.status().message();
}

TEST(TextFormTest, WritesKnownTexts) {
  const std::tuple<TextForm, int64_t, std::string_view> cases[] = {
      {{}, 0, "0"},
      {{}, 1169786042799259000, "1169786042799259000"},
      {{}, INT64_MIN, "-9223372036854775808"},
      {{Base::kDecimal, 9}, 42, "000000042"},
      {{Base::kDecimal, 9}, -42, "-00000042"},
      {{Base::kDecimal, 3}, 12345, "12345"},
      {{Base::kBase62}, 61, "z"},
      {{Base::kBase62}, 62, "10"},
      {{Base::kBase62}, 10, "A"},
      {{Base::kBase62, 11}, 36, "0000000000a"},
      {{Base::kBase62}, INT64_MAX, "AzL8n0Y58m7"},
      {{Base::kBase62}, -1, "LygHa16AHYF"},
      {{Base::kBase36}, 35, "Z"},
      {{Base::kBase36}, 36, "10"},
      {{Base::kBase36, 5}, 1679615, "0ZZZZ"},
      {{Base::kBase36}, INT64_MAX, "1Y2P0IJ32E8E7"},
      {{Base::kBase36}, -1, "3W5E11264SGSF"},
      {{Base::kCrockford32}, 31, "Z"},
      {{Base::kCrockford32}, 32, "10"},
      {{Base::kCrockford32}, -1, "FZZZZZZZZZZZZ"},
      {{Base::kCrockford32, 4}, 18, "000J"},
  };
  for (const auto& [form, id, text] : cases) {
    EXPECT_EQ(form.Format(id), text);
    EXPECT_EQ(ParseId(form.base, text).value(), id);
  }
}

TEST(TextFormTest, Base36ReadsEitherCase) {
  EXPECT_EQ(ParseId(Base::kBase36, "1y2p0ij32e8e7").value(), INT64_MAX);
  EXPECT_EQ(ParseId(Base::kBase36, "3w5e11264Sgsg").code(), Code::kInvalid) << "beyond 64 bits";
}

TEST(TextFormTest, ReadsBackBoundaryAndRandomIdsInEveryFormAndPadding) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  std::vector<int64_t> ids = BoundaryIds();
  for (int i = 0; i < 3000; ++i) {
    ids.push_back(static_cast<int64_t>(entropy.Next() >> entropy.Below(64)));
  }
  for (const Base base : kBases) {
    for (const int pad_to : {0, 1, 5, 13, 20, TextForm::kPadMax}) {
      const TextForm form{base, pad_to};
      for (const int64_t id : ids) {
        const std::string text = form.Format(id);
        ASSERT_EQ(ParseId(base, text).value(), id) << text;
        ASSERT_GE(static_cast<int>(text.size()), pad_to);
        ASSERT_LE(static_cast<int>(text.size()), form.length_max());
      }
    }
  }
}

TEST(TextFormTest, EqualLengthsSortLikeNumbers) {
  for (const Base base : kBases) {
    std::vector<int64_t> ids = BoundaryIds();
    std::erase_if(ids, [](int64_t id) { return id < 0; });
    std::sort(ids.begin(), ids.end());
    for (size_t i = 1; i < ids.size(); ++i) {
      const TextForm form{base, 20};
      EXPECT_EQ(form.Format(ids[i - 1]) < form.Format(ids[i]), ids[i - 1] < ids[i]);
    }
  }
}

TEST(TextFormTest, NamesAnInvalidCharacterAtEveryPosition) {
  for (const Base base : kBases) {
    const std::string good = TextForm{base}.Format(1169786042799259000);
    for (size_t at = 0; at < good.size(); ++at) {
      for (const char wrong :
           {'!', ' ', '\0', '\n', '+', '\x80', '\xff', '/', ':', '@', '[', '{'}) {
        std::string bad = good;
        bad[at] = wrong;
        EXPECT_THAT(PositionIn(ParseId(base, bad)),
                    HasSubstr("position " + std::to_string(at + 1) + " "));
      }
    }
  }
}

TEST(TextFormTest, EveryByteIsADigitOrIsRefused) {
  constexpr std::string_view kCrockfordReads =
      "0123456789ABCDEFGHJKMNPQRSTVWXYZabcdefghjkmnpqrstvwxyzIiLlOo";
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text(1, static_cast<char>(byte));
    const bool digit = byte >= '0' && byte <= '9';
    const bool letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
    EXPECT_EQ(ParseId(Base::kDecimal, text).ok(), digit) << byte;
    EXPECT_EQ(ParseId(Base::kBase62, text).ok(), digit || letter) << byte;
    EXPECT_EQ(ParseId(Base::kCrockford32, text).ok(), kCrockfordReads.find(text) != text.npos)
        << byte;
  }
}

TEST(TextFormTest, NamesTheDigitThatMakesANumberTooLarge) {
  const std::tuple<Base, std::string_view, int> cases[] = {
      {Base::kDecimal, "9223372036854775808", 19},
      {Base::kDecimal, "-9223372036854775809", 20},
      {Base::kDecimal, "00009223372036854775808", 23},
      {Base::kDecimal, "92233720368547758070", 20},
      {Base::kDecimal, "99999999999999999999999999", 19},
      {Base::kBase62, "LygHa16AHYG", 11},
      {Base::kBase62, "M0000000000", 11},
      {Base::kBase62, "LygHa16AHYF0", 12},
      {Base::kCrockford32, "G000000000000", 13},
      {Base::kCrockford32, "FZZZZZZZZZZZZ0", 14},
  };
  for (const auto& [base, text, position] : cases) {
    EXPECT_THAT(PositionIn(ParseId(base, text)),
                HasSubstr("position " + std::to_string(position) + " of"))
        << text;
  }
}

TEST(TextFormTest, RefusesEmptyAndSignedAndOverlongTexts) {
  for (const Base base : kBases) {
    EXPECT_THAT(PositionIn(ParseId(base, "")), HasSubstr("position 1 "));
    EXPECT_TRUE(ParseId(base, std::string(TextForm::kPadMax, '0')).ok());
    EXPECT_THAT(PositionIn(ParseId(base, std::string(TextForm::kPadMax + 1, '0'))),
                HasSubstr("position 65"));
  }
  for (const char* text : {"-", "--1", "+1", "-0", "1-", "0x1", "1e3", "1.0", "1 "}) {
    EXPECT_FALSE(ParseId(Base::kDecimal, text).ok()) << text;
  }
  EXPECT_FALSE(ParseId(Base::kCrockford32, "---").ok());
}

TEST(TextFormTest, CrockfordAcceptsCommonTypingErrors) {
  EXPECT_EQ(ParseId(Base::kCrockford32, "1o-iL").value(),
            ParseId(Base::kCrockford32, "1011").value());
  EXPECT_EQ(ParseId(Base::kCrockford32, "abc").value(), ParseId(Base::kCrockford32, "ABC").value());
}

}  // namespace
}  // namespace firn
