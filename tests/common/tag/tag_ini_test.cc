#include "common/tag/tag_ini.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fuzz/random_tag.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Returns the faults as "line: what".
std::vector<std::string> Faults(std::string_view text) {
  std::vector<std::string> out;
  for (const LineFault& fault : ParseTagIni(text).faults) {
    out.push_back(std::to_string(fault.line) + ": " + fault.what);
  }
  return out;
}

TagDefinition One(std::string_view text) {
  const TagIni ini = ParseTagIni(text);
  EXPECT_EQ(ini.status(), Status());
  EXPECT_THAT(ini.tags, SizeIs(1));
  return ini.tags.empty() ? TagDefinition() : ini.tags[0];
}

TEST(TagIniTest, ReadsEveryKindOfSetting) {
  const TagDefinition tag =
      One("# ids of the shop\r\n"
          "[order]          ; the one that counts\r\n"
          "strategy = segment          ; or snowflake\r\n"
          "store    = registry\n"
          "start    = 100\n"
          "step     = 1000\n"
          "buffer   = none\n"
          "disabled = true\n"
          "plugins  = limit, history\n"
          "limit.per_second = 5000\n"
          "text     = {date:%y%m%d}{id:09}\n");
  EXPECT_EQ(tag.name, "order");
  EXPECT_EQ(tag.strategy, "segment");
  EXPECT_EQ(tag.start, 100);
  EXPECT_EQ(tag.buffer, TagBuffer::kNone);
  EXPECT_TRUE(tag.disabled);
  EXPECT_THAT(tag.plugins, ElementsAre("limit", "history"));
  EXPECT_EQ(tag.limit_per_second, 5000);
  EXPECT_EQ(tag.text, "{date:%y%m%d}{id:09}");
}

TEST(TagIniTest, QuotesProtectCharactersThatEndAValue) {
  const TagDefinition tag =
      One("[ \"a ]; \\\"b\\\" \\\\\" ] ; comment\n"
          "strategy=snowflake\n"
          "plugins=geo\n"
          "geo.region = \" ; x\\\"\" ; comment\n"
          "geo.plain = a;b#c \"d\"\n");
  EXPECT_EQ(tag.name, "a ]; \"b\" \\");
  EXPECT_EQ(tag.options.at("geo.region"), " ; x\"");
  EXPECT_EQ(tag.options.at("geo.plain"), "a;b#c \"d\"");
}

TEST(TagIniTest, AcceptsAByteOrderMarkAndAMissingLastNewline) {
  EXPECT_EQ(One("\xEF\xBB\xBF[a]\nstrategy = snowflake").strategy, "snowflake");
}

TEST(TagIniTest, AnEmptyFileHasNoTagsAndNoFaults) {
  EXPECT_THAT(ParseTagIni("\n ; nothing\n\t\n").tags, IsEmpty());
  EXPECT_THAT(Faults("\n ; nothing\n\t\n"), IsEmpty());
}

TEST(TagIniTest, ReportsEveryFaultWithItsLine) {
  EXPECT_THAT(Faults("step = 1\n"                // 1
                     "[order]\n"                 // 2
                     "strategy = segment\n"      // 3
                     "step = ten\n"              // 4
                     "step = 10\n"               // 5
                     "prefetch_at = 100\n"       // 6
                     "stpe = 1\n"                // 7
                     "nonsense\n"                // 8
                     "high = 7\n"                // 9
                     "store =\n"                 // 10
                     "text = \"open\n"           // 11
                     "zone = \"UTC\" more\n"     // 12
                     "plugins = a,,b\n"          // 13
                     "[user\n"                   // 14
                     "strategy = snowflake\n"    // 15
                     "[bill]\n"                  // 16
                     "step_max = 10\n"           // 17
                     "[order] x\n"               // 18
                     "[order]\n"                 // 19
                     "strategy = snowflake\n"),  // 20
              ElementsAre("1: a setting before the first [tag]",
                          "4: [order] step: 'ten' is not a whole number of 63 bits",
                          "5: [order] step: set twice, first at line 4",
                          "6: [order] prefetch_at: 100 is not within 1 and 99",
                          "7: [order] stpe: no such setting",
                          "8: neither [tag], nor key = value, nor a comment",
                          HasSubstr("9: [order] high: cannot be set, only servers raise it"),
                          "10: [order] store: has no value",
                          "11: [order] text: the closing quote is missing",
                          "12: [order] zone: something follows the closing quote",
                          "13: [order] plugins: the list has an empty item",
                          "14: the closing bracket of [name] is missing",
                          "16: [bill] strategy: missing; say snowflake, segment or dated",
                          "17: [bill] step_max: 10 is below the step of 1000",
                          "18: something follows the closing bracket",
                          "18: strategy: missing; say snowflake, segment or dated",
                          "19: [order] is defined twice, first at line 2"));
}

TEST(TagIniTest, AFaultyValueIsNotReportedTwice) {
  EXPECT_THAT(Faults("[a]\nstrategy = segment\nplugins = obfuscate\nobfuscate.width = x\n"
                     "obfuscate.key = \"\nobfuscate.check = c6a13b\n"),
              SizeIs(2));
}

TEST(TagIniTest, TheMessageOfAStatusHasALineForEachFault) {
  const Status status = ParseTagIni("x\ny\n").status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_EQ(status.message(),
            "line 1: neither [tag], nor key = value, nor a comment\n"
            "line 2: neither [tag], nor key = value, nor a comment");
}

TEST(TagIniTest, RefusesHostileTextWithBoundedWork) {
  EXPECT_THAT(Faults(std::string(kTagIniBytesMax + 1, '\n')), SizeIs(1));
  std::string lines;
  for (int i = 0; i < 5000; ++i) lines += "x\n";
  EXPECT_THAT(Faults(lines), SizeIs(LineFaults::kMost));
  std::string sections;
  for (size_t i = 0; i <= kTagIniTagsMax + 1; ++i) {
    sections += "[t" + std::to_string(i) + "]\nstrategy = snowflake\n";
  }
  EXPECT_THAT(Faults(sections), ElementsAre(HasSubstr("more than 10000 tags")));
  EXPECT_FALSE(ParseTagIni(std::string("[a\0b]\nstrategy = segment\n", 26)).status().ok());
  EXPECT_FALSE(ParseTagIni("[a]\nstrategy = segment\ntext = \xFF{id}\n").status().ok());
  EXPECT_FALSE(ParseTagIni("[a]\nstrategy = segment\n\xFF = 1\n").status().ok());
}

TEST(TagIniTest, MessagesNeverCarryControlCharacters) {
  EXPECT_THAT(Faults("[a]\nstrategy = segment\nstep = \x01\n"),
              ElementsAre("3: [a] step: is not printable UTF-8"));
  SeededEntropy entropy(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text = "[a]\nstrategy = segment\n";
    for (uint64_t n = entropy.Below(40); n > 0; --n) text += static_cast<char>(entropy.Below(256));
    for (const LineFault& fault : ParseTagIni(text).faults) {
      for (const char c : fault.what)
        ASSERT_TRUE(static_cast<unsigned char>(c) >= 0x20) << fault.what;
    }
  }
}

TEST(TagIniTest, ReadsBackWhatItWrites) {
  const uint64_t seed = 20261121;
  SeededEntropy entropy(seed);
  for (int i = 0; i < 2000; ++i) {
    std::vector<TagDefinition> tags = {RandomTag(entropy), RandomTag(entropy)};
    if (tags[0].name == tags[1].name) continue;
    const std::string text = WriteTagIni(tags);
    for (TagDefinition& tag : tags) tag.high = 0;
    const TagIni read = ParseTagIni(text);
    ASSERT_EQ(read.status(), Status()) << "seed " << seed << "\n" << text;
    ASSERT_EQ(read.tags, tags) << "seed " << seed << "\n" << text;
  }
}

}  // namespace
}  // namespace firn
