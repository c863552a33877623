#include "common/base/properties.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Entry = Properties::Entry;

TEST(PropertiesTest, ReadsEverySpellingOfAnEntry) {
  const std::tuple<std::string_view, std::string_view, std::string_view> cases[] = {
      {"key=value", "key", "value"},
      {"key:value", "key", "value"},
      {"key value", "key", "value"},
      {"key\tvalue", "key", "value"},
      {"  key  =  value", "key", "value"},
      {"key = value ", "key", "value "},
      {"key", "key", ""},
      {"key=", "key", ""},
      {"=value", "", "value"},
      {"key==value", "key", "=value"},
      {"key = : value", "key", ": value"},
      {"a\\ b\\=c\\:d=v", "a b=c:d", "v"},
      {"k=a\\tb\\nc\\rd\\fe\\qf\\\\", "k", "a\tb\nc\rd\feqf\\"},
      {"k=\\u0041\\u00e9\\u96Ea\\ud83d\\ude00", "k", "Aé雪😀"},
      {"k=\xe9", "k", "é"},
      {"k=a\\\n  b\\\r\n\tc", "k", "abc"},
      {"k=a\\\n#b", "k", "a#b"},
      {"\\#k=v", "#k", "v"},
      {"k=v # no comment", "k", "v # no comment"},
      {"\\\n\n#comment\nk=v", "k", "v"},
  };
  for (const auto& [text, key, value] : cases) {
    const Result<Properties> read = Properties::Parse(text);
    ASSERT_TRUE(read.ok()) << text << read.status();
    ASSERT_EQ(read->entries().size(), 1u) << text;
    EXPECT_EQ(read->entries()[0].key, key) << text;
    EXPECT_EQ(read->entries()[0].value, value) << text;
  }
}

TEST(PropertiesTest, LeavesOutCommentsAndBlankLinesAndKnowsLines) {
  const Result<Properties> read =
      Properties::Parse("# one\n! two\\\n\n   \t\n  # three\nlocations=a,\\\n   b\r\n\rlast=1");
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_THAT(read->entries(), ElementsAre(Entry{"locations", "a,b", 6}, Entry{"last", "1", 9}));
  EXPECT_EQ(*read->Find("last"), "1");
  EXPECT_EQ(read->Find("gone"), nullptr);
}

TEST(PropertiesTest, TheLastOfEqualKeysWinsAndIsReported) {
  const Result<Properties> read = Properties::Parse("a=1\nb=2\na=3\n");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read->Find("a"), "3");
  EXPECT_THAT(read->duplicates(), ElementsAre("line 3: 'a' is already in line 1"));
}

TEST(PropertiesTest, NamesTheLineAtFault) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"a=1\nb=\\u12", "line 2: \\u without"},
      {"a=1\nb=\\u12g4\n", "line 2: \\u without"},
      {"\\u=1", "line 1: \\u without"},
      {"a=\\ud83d", "line 1: half a surrogate"},
      {"a=\\ud83d\\u0041", "line 1: half a surrogate"},
      {"a=\\ude00\\ud83d", "line 1: half a surrogate"},
      {"a=\\u0000", "line 1: a NUL"},
      {"a=1\n\nb=2\\", "line 3: the text ends within"},
      {"a=1\\\n", "line 1: the text ends within"},
      {std::string_view("a=1\nb=\0", 7), "line 2: a NUL"},
  };
  for (const auto& [text, fault] : cases) {
    const Result<Properties> read = Properties::Parse(text);
    EXPECT_EQ(read.code(), Code::kInvalid) << text;
    EXPECT_THAT(read.status().message(), HasSubstr(std::string(fault)));
  }
}

TEST(PropertiesTest, HasLimits) {
  EXPECT_TRUE(Properties::Parse(std::string(Properties::kBytesMax, 'a')).ok());
  EXPECT_FALSE(Properties::Parse(std::string(Properties::kBytesMax + 1, 'a')).ok());
  std::string many;
  for (size_t i = 0; i < Properties::kEntriesMax; ++i) many += std::to_string(i) + "\n";
  EXPECT_TRUE(Properties::Parse(many).ok());
  EXPECT_THAT(Properties::Parse(many + "x\n").status().message(), HasSubstr("line 10001"));
}

TEST(PropertiesTest, ReadsEveryByteOrSaysWhyNot) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = std::string("k=a") + static_cast<char>(byte) + "b";
    EXPECT_EQ(Properties::Parse(text).ok(), byte != 0) << byte;
  }
}

TEST(PropertiesTest, RefusesToHoldWhatItCouldNotWrite) {
  Properties made;
  EXPECT_EQ(made.Set("a\xff", "b").code(), Code::kInvalid);
  EXPECT_EQ(made.Set("a", std::string("b\0", 2)).code(), Code::kInvalid);
  EXPECT_TRUE(made.entries().empty());
}

TEST(PropertiesTest, ReadsBackWhatItWrites) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  static constexpr const char* kPieces[] = {"a",  " ",  "=",    ":",    "#",    "!",
                                            "\\", "\n", "\r",   "\t",   "\f",   "é",
                                            "雪", "😀",  "\x01", "\x7f", "u0041"};
  const auto any = [&] {
    std::string text;
    for (uint64_t n = entropy.Below(8); n > 0; --n) {
      text += kPieces[entropy.Below(std::size(kPieces))];
    }
    return text;
  };
  for (int i = 0; i < 3000; ++i) {
    Properties made;
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(made.Set(any(), any()).ok());
    const Result<Properties> read = Properties::Parse(made.ToText());
    ASSERT_TRUE(read.ok()) << made.ToText();
    ASSERT_EQ(read->entries().size(), made.entries().size());
    for (const Entry& entry : made.entries()) ASSERT_EQ(*read->Find(entry.key), entry.value);
  }
}

}  // namespace
}  // namespace firn
