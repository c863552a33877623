#include "common/text/text_template.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

const WallMs kIssued = ParseRfc3339("2024-05-07T23:09:05.042Z").value();

std::string Written(std::string_view text, int64_t id, std::string_view zone = "UTC") {
  const Result<TextTemplate> made = TextTemplate::Parse(text, TimeZone::Load(zone).value());
  return made.ok() ? made->Format(id, kIssued) : made.status().ToString();
}

TEST(TextTemplateTest, WritesIdsAmongLettersAndDates) {
  const std::tuple<std::string_view, int64_t, std::string_view> cases[] = {
      {"", 42, "42"},
      {"{id}", 42, "42"},
      {"{date:%y%m%d}{id:09}", 42, "240507000000042"},
      {"{date:%y%m%d}{id:09}", 1234567890123, "2405071234567890123"},
      {"INV-{id:base32}", 42, "INV-1A"},
      {"{id:base62,06}", 61, "00000z"},
      {"R{id:base36,04}", 1295, "R00ZZ"},
      {"{id:06,base62}", 61, "00000z"},
      {"{{{id}}}", 7, "{7}"},
      {"{date:%Y-%m-%dT%H:%M:%S.%L %j%%}/{id}", 7, "2024-05-07T23:09:05.042 128%/7"},
      {"№{id}", 7, "№7"},
  };
  for (const auto& [text, id, written] : cases) EXPECT_EQ(Written(text, id), written) << text;
}

TEST(TextTemplateTest, UsesTheDateOfTheZone) {
  EXPECT_EQ(Written("{date:%d%H}-{id}", 1, "Asia/Shanghai"), "0807-1");
  EXPECT_EQ(Written("{date:%d%H}-{id}", 1, "-04:30"), "0718-1");
}

TEST(TextTemplateTest, ADatedNumberIsItsPeriodAndItsCount) {
  const DatedNumbers days(Period::kDay, 6);
  const auto made = [&](std::string_view text) {
    return TextTemplate::Parse(text, TimeZone::Utc(), days);
  };
  const TextTemplate order = made("ORD-{period}-{count}").value();
  EXPECT_EQ(order.Format(20261122000001, kIssued), "ORD-20261122-000001");
  EXPECT_EQ(order.ParseId("ORD-20261122-000001").value(), 20261122000001);
  for (const char* text : {"", "ORD-20261122-00001", "ORD-20261122-0000010", "ORD-2026112x-000001",
                           "XRD-20261122-000001"}) {
    EXPECT_EQ(order.ParseId(text).code(), Code::kInvalid) << text;
  }
  EXPECT_EQ(made("{count}/{date:%y}/{period}").value().Format(20261122000001, kIssued),
            "000001/24/20261122");
  EXPECT_EQ(made("{id}").value().Format(20261122000001, kIssued), "20261122000001");
  // This is not a number of the tag, and its text differs from the texts of all numbers.
  EXPECT_EQ(order.Format(INT64_MAX, kIssued), "ORD-9223372036854-775807");
  EXPECT_LE(order.Format(INT64_MAX, kIssued).size(), order.length_max());
  for (const char* text :
       {"{period}", "{count}", "{period}{count}{count}", "{period}{count}{id}"}) {
    EXPECT_FALSE(made(text).ok()) << text;
  }
  EXPECT_THAT(TextTemplate::Parse("{period}{count}").status().message(),
              HasSubstr("require a dated tag"));
}

TEST(TextTemplateTest, DatesStandForThePeriodOfACount) {
  const auto made = [](std::string_view text, Period period = Period::kDay) {
    return TextTemplate::Parse(text, TimeZone::Utc(), DatedNumbers(period, 6));
  };
  const struct {
    const char* text;
    Period period;
    int64_t number;
    const char* written;
  } kCases[] = {
      {"{date:%y%m%d}{count}", Period::kDay, 20261122000001, "261122000001"},
      {"{date:%Y-%m-%d}/{count}", Period::kDay, 20991231999999, "2099-12-31/999999"},
      {"{count}.{date:%j}{date:%Y}", Period::kDay, 20241231000042, "000042.3662024"},
      {"{date:%m}{date:%j}{date:%Y}{count}", Period::kDay, 20241231000042, "123662024000042"},
      {"{date:%y%m%d%Y}{count}", Period::kDay, 20000229000001, "0002292000000001"},
      {"{date:%m%y}N{count}", Period::kMonth, 202611000007, "1126N000007"},
      {"{date:%y}{count}", Period::kYear, 2026000009, "26000009"},
      {"{date:%Y}{count}", Period::kYear, 2126000009, "2126000009"},
  };
  for (const auto& one : kCases) {
    const auto form = made(one.text, one.period);
    ASSERT_TRUE(form.ok()) << one.text << " " << form.status();
    // The issue time has no effect, because numbers may be issued in the grace time of their
    // period.
    EXPECT_EQ(form->Format(one.number, kIssued), one.written) << one.text;
    EXPECT_EQ(form->ParseId(one.written).value_or(-1), one.number) << one.text;
    EXPECT_LE(form->Format(one.number, kIssued).size(), form->length_max());
  }
}

TEST(TextTemplateTest, DatesInPlaceOfAPeriodRepeatNoText) {
  const DatedNumbers days(Period::kDay, 6);
  const TextTemplate order =
      TextTemplate::Parse("{date:%y%m%d}{count}", TimeZone::Utc(), days).value();
  // A number of another century, and a number that does not belong to the tag.
  EXPECT_EQ(order.Format(21261122000001, kIssued), "?21261122000001");
  EXPECT_EQ(order.Format(99999999000001, kIssued), "?99999999000001");
  for (const char* text : {"26112200001", "261131000001", "2611x2000001", "?21261122000001"}) {
    EXPECT_EQ(order.ParseId(text).code(), Code::kInvalid) << text;
  }
  const TextTemplate both =
      TextTemplate::Parse("{date:%y%m%d}{count}{date:%Y}", TimeZone::Utc(), days).value();
  EXPECT_EQ(both.ParseId("2611220000012026").value(), 20261122000001);
  EXPECT_EQ(both.ParseId("2611220000012027").code(), Code::kInvalid) << "the dates differ";
}

TEST(TextTemplateTest, DatesThatDoNotDetermineThePeriodAreRefused) {
  const auto why = [](std::string_view text, Period period = Period::kDay) {
    return TextTemplate::Parse(text, TimeZone::Utc(), DatedNumbers(period, 6)).status().message();
  };
  EXPECT_THAT(why("{date:%m%d}{count}"), HasSubstr("needs year, month and day"));
  EXPECT_THAT(why("{date:%y%m}{count}"), HasSubstr("needs year, month and day"));
  EXPECT_THAT(why("{date:%y}{count}", Period::kMonth), HasSubstr("needs year and month"));
  EXPECT_THAT(why("{date:%y%m%d%H}{count}"), HasSubstr("%H beside {count} is not determined"));
  EXPECT_THAT(why("{date:%y%m%d}{count}", Period::kMonth), HasSubstr("%d beside {count}"));
  EXPECT_THAT(why("{date:%y%m%d}{count}{count}"), HasSubstr("{count} must appear once"));
  EXPECT_THAT(why("{date:%y%m%d}{count}{id}"), HasSubstr("{count} must appear once"));
  EXPECT_THAT(why("{count:06}"), HasSubstr("the last two are for dated tags"));
  EXPECT_THAT(TextTemplate::Parse("{date:%y%m%d}{count}").status().message(),
              HasSubstr("require a dated tag"));
}

// Returns ids of a layout, with the limits of its fields and values between them.
std::vector<int64_t> IdsOf(const Layout& layout, Entropy& entropy) {
  std::vector<int64_t> ids;
  for (int i = 0; i < 300; ++i) {
    const auto below = [&](uint64_t max) {
      if (i < 2) return i == 0 ? 0 : max;
      return max == UINT64_MAX ? entropy.Next() : entropy.Below(max + 1);
    };
    const auto tick =
        static_cast<int64_t>(below(static_cast<uint64_t>(layout.last_tick().count())));
    const auto machine = static_cast<uint32_t>(below(layout.machine().max()));
    IdFields fields{Tick(tick), MachineId(machine), below(layout.sequence().max())};
    if (const Field* version = layout.Find(FieldKind::kVersion))
      fields.version = below(version->max());
    if (const Field* method = layout.Find(FieldKind::kMethod)) fields.method = below(method->max());
    ids.push_back(layout.Pack(fields).value());
  }
  return ids;
}

TEST(TextTemplateTest, ReadsBackTheFieldsOfAnIdInEveryLayout) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (const char* name :
       {"firn", "twitter", "vesta-max-peak", "vesta-min-granularity", "js-safe",
        "time:31s machine:10 sequence:22 epoch:2024-01-01", "sequence:8 machine:3 time:33@10ms",
        "time:29@7s machine:1 sequence:33 epoch:1288834974657", "machine:10 time:41 sequence:12"}) {
    const Layout layout = Layout::Parse(name).value();
    for (const char* form : {"A{date:%y}{id:fields}-Z", "{id:uuid7}", "{date:%y}-{id:uuid7}0"}) {
      const TextTemplate made = TextTemplate::Parse(form, TimeZone::Utc(), {}, layout).value();
      std::unordered_map<std::string, int64_t> seen;
      const std::vector<int64_t> ids = IdsOf(layout, entropy);
      const size_t width = made.Format(ids.front(), WallMs(0)).size();
      for (const int64_t id : ids) {
        const std::string text = made.Format(id, WallMs(1'700'000'000'000));
        EXPECT_EQ(text.size(), width) << name << " " << text;
        EXPECT_EQ(made.ParseId(text).value_or(-1), id) << name << " " << text;
        EXPECT_EQ(seen.emplace(text, id).first->second, id) << name << " " << text;
        EXPECT_LE(text.size(), made.length_max());
      }
    }
  }
}

TEST(TextTemplateTest, AUuidHasTheTickInMillisecondsAndAllBitsOfTheId) {
  const auto made = [](const Layout& layout) {
    return TextTemplate::Parse("{id:uuid7}", TimeZone::Utc(), {}, layout).value();
  };
  // Its time in milliseconds is 0x16d0435d8e2, and the id 0x103bea3548427d78.
  const int64_t id = 1169786042799259000;
  const TextTemplate twitter = made(Layout::Twitter());
  EXPECT_EQ(twitter.Format(id, WallMs(0)), "016d0435-d8e2-7103-afa8-d52109f5e000");
  EXPECT_EQ(made(Layout::Firn()).Format(-5, WallMs(0)), "-5") << "no id of this layout";
  const std::string text = twitter.Format(id, WallMs(0));
  std::string upper = text;
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  EXPECT_EQ(twitter.ParseId(upper).value_or(-1), id);
  for (size_t at = 0; at < text.size(); ++at) {
    std::string edited = text;
    edited[at] = edited[at] == '1' ? '3' : '1';
    const auto read = twitter.ParseId(edited);
    const bool beside_machine_and_sequence = at < 28 || at > 33;
    EXPECT_EQ(read.ok() && beside_machine_and_sequence, false) << edited;
    EXPECT_TRUE(!read.ok() || twitter.Format(*read, WallMs(0)) == edited) << edited;
  }
  for (const std::string& wrong : {std::string(), text + "0", text.substr(1), "{" + text + "}",
                                   std::string("1169786042799259000")}) {
    EXPECT_EQ(twitter.ParseId(wrong).code(), Code::kInvalid) << wrong;
  }
}

TEST(TextTemplateTest, UuidsSortLikeTheIdsOfOneMachine) {
  const Layout& layout = Layout::Firn();
  const TextTemplate made = TextTemplate::Parse("{id:uuid7}", TimeZone::Utc(), {}, layout).value();
  std::string before;
  for (int64_t tick = 1; tick < 1000; ++tick) {
    for (const uint64_t sequence : {0u, 1u, 4095u}) {
      const auto id = layout.Pack({Tick(tick * 997), MachineId(7), sequence}).value();
      const std::string text = made.Format(id, WallMs(0));
      EXPECT_LT(before, text);
      before = text;
    }
  }
}

TEST(TextTemplateTest, FieldsAreATimeInUtcAMachineIdAndASequence) {
  const auto made = [](const Layout& layout) {
    return TextTemplate::Parse("{id:fields}", TimeZone::Load("+05:30").value(), {}, layout).value();
  };
  const int64_t id = 1169786042799259000;
  EXPECT_EQ(made(Layout::Twitter()).Format(id, WallMs(0)), "20190906013500834-0039-3448");
  EXPECT_EQ(made(Layout::VestaMaxPeak()).Format(2319542600899494910, WallMs(0)),
            "20150528080539-1022-0000000-0-2");
  EXPECT_EQ(made(Layout::Firn()).Format(-5, WallMs(0)), "-5") << "no id of this layout";

  const TextTemplate twitter = made(Layout::Twitter());
  EXPECT_EQ(twitter.ParseId("20190906013500834-0039-3448").value(), id);
  for (const char* text :
       {"", "20190906013500834-0039-344", "20190906013500834-0039-34480",
        "20190906013500834-1024-3448", "20190906013500834-0039-4096", "20190906013500834 0039-3448",
        "20191306013820834-0039-3448", "20190230013820834-0039-3448", "20190906243820834-0039-3448",
        "20090906013820834-0039-3448", "2019090601382083x-0039-3448", "1169786042799259000"}) {
    EXPECT_EQ(twitter.ParseId(text).code(), Code::kInvalid) << text;
  }
  EXPECT_EQ(made(Layout::Parse("time:33@10ms machine:3 sequence:8").value())
                .ParseId("20240101000000005-0-000")
                .code(),
            Code::kInvalid)
      << "in the midst of a tick";
}

TEST(TextTemplateTest, OnlyIdsWithFieldsShowThem) {
  EXPECT_THAT(TextTemplate::Parse("{id:fields}").status().message(), HasSubstr("snowflake tags"));
  EXPECT_THAT(TextTemplate::Parse("{id:uuid7}").status().message(), HasSubstr("snowflake tags"));
  for (const char* text : {"{id:fields}{id}", "{id:fields,09}", "{id:fields,base36}",
                           "{id:uuid7}{id}", "{id:uuid7,09}", "{id:uuid7}{id:fields}"}) {
    EXPECT_FALSE(TextTemplate::Parse(text, TimeZone::Utc(), {}, Layout::Firn()).ok()) << text;
  }
}

TEST(TextTemplateTest, RefusesTextsThatCouldRepeatWithTheReason) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"{date:%y%m%d}", "no {id}"},
      {"plain", "no {id}"},
      {"{{id}}", "no {id}"},
      {"{id}{id}", "more than once"},
      {"{id}-{id:base62}", "more than once"},
      {"{date:%B}{id}", "whose width never changes"},
      {"{date:%e}{id}", "whose width never changes"},
      {"{date:%s}{id}", "whose width never changes"},
      {"{date:%Z}{id}", "whose width never changes"},
      {"{date:%-d}{id}", "whose width never changes"},
      {"{date:%5Y}{id}", "whose width never changes"},
      {"{date:%}{id}", "whose width never changes"},
      {"{date:%é}{id}", "'%\\xc3' is not one"},
      {"{date:}{id}", "no date conversion"},
      {"{date:x%%}{id}", "no date conversion"},
      {"{date}{id}", "is none of"},
      {"{ID}", "is none of"},
      {"{id }", "is none of"},
      {"{}{id}", "is none of"},
      {"{id:}", "'' in {id:...}"},
      {"{id:9}", "'9' in {id:...}"},
      {"{id:00}", "'00' in {id:...}"},
      {"{id:065}", "'065' in {id:...}"},
      {"{id:09,09}", "'09' in {id:...}"},
      {"{id:base62,base32}", "'base32' in {id:...}"},
      {"{id:09,}", "'' in {id:...}"},
      {"{id:base64}", "'base64' in {id:...}"},
      {"{id:\xc3\xbc}", "'\\xc3\\xbc' in {id:...}"},
      {"{id", "no '}'"},
      {"id}", "without its '{'"},
      {"{id}}", "without its '{'"},
      {"{id}\n", "printable"},
      {"{id}\xff", "printable"},
  };
  for (const auto& [text, fault] : cases) {
    const Result<TextTemplate> made = TextTemplate::Parse(text);
    EXPECT_EQ(made.code(), Code::kInvalid) << text;
    EXPECT_THAT(made.status().message(), HasSubstr(std::string(fault))) << text;
  }
  EXPECT_FALSE(TextTemplate::Parse("{id}" + std::string(253, 'x')).ok());
}

TEST(TextTemplateTest, NamesEveryFaultAtOnce) {
  const Status status = TextTemplate::Parse("{date:%Q}{what}}").status();
  for (const char* fault : {"%Q", "{what}", "without its '{'", "no {id}"}) {
    EXPECT_THAT(status.message(), HasSubstr(fault));
  }
}

// Templates with many digits next to the id, in which an ambiguous text is most likely.
class RandomTemplates {
 public:
  explicit RandomTemplates(Entropy& entropy) : entropy_(entropy) {}

  std::string Next() {
    std::string text = Surroundings();
    static constexpr const char* kIds[] = {"{id}",          "{id:02}",     "{id:05}",
                                           "{id:base62}",   "{id:base36}", "{id:base32,03}",
                                           "{id:base62,02}"};
    text += kIds[entropy_.Below(std::size(kIds))];
    return text + Surroundings();
  }

 private:
  std::string Surroundings() {
    static constexpr const char* kPieces[] = {"{date:%y}", "{date:%j}", "{date:%L}", "{date:%d%m}",
                                              "0",         "1",         "12",        "-"};
    std::string text;
    for (uint64_t n = entropy_.Below(4); n > 0; --n) {
      text += kPieces[entropy_.Below(std::size(kPieces))];
    }
    return text;
  }

  Entropy& entropy_;
};

TEST(TextTemplateTest, TwoIdsNeverShareATextAtAnyTime) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  RandomTemplates templates(entropy);
  for (int i = 0; i < 60; ++i) {
    const std::string text = templates.Next();
    const TextTemplate made = TextTemplate::Parse(text).value();
    std::unordered_map<std::string, int64_t> seen;
    for (int n = 0; n < 4000; ++n) {
      // All short ids are included, so that texts of different lengths could collide.
      const auto id = static_cast<int64_t>(n < 2000 ? entropy.Below(1200)
                                                    : entropy.Next() >> (1 + entropy.Below(63)));
      const WallMs issued(static_cast<int64_t>(entropy.Below(4'000'000'000'000)));
      const std::string written = made.Format(id, issued);
      const auto [first, is_new] = seen.emplace(written, id);
      ASSERT_TRUE(is_new || first->second == id)
          << text << " writes " << written << " for " << first->second << " and " << id;
      ASSERT_EQ(made.ParseId(written).value(), id) << text << " " << written;
      ASSERT_LE(written.size(), made.length_max());
    }
  }
}

TEST(TextTemplateTest, WidthsApplyAtEveryTime) {
  const TextTemplate made =
      TextTemplate::Parse("{date:%Y%y%m%d%j%H%M%S%L}{id}", TimeZone::Load("+23:59").value())
          .value();
  for (const int64_t ms : {INT64_MIN, kCalendarBegin.ms(), int64_t{-1}, int64_t{0},
                           kCalendarEnd.ms() - 1, kCalendarEnd.ms(), INT64_MAX}) {
    EXPECT_EQ(made.Format(5, WallMs(ms)).size(), 4u + 2 + 2 + 2 + 3 + 2 + 2 + 2 + 3 + 1) << ms;
  }
}

TEST(TextTemplateTest, ReadsOnlyItsOwnTexts) {
  const TextTemplate made = TextTemplate::Parse("A{date:%y%m%d}{id:04}-Z").value();
  EXPECT_EQ(made.ParseId("A2405070042-Z").value(), 42);
  EXPECT_EQ(made.ParseId("A99999912345-Z").value(), 12345);
  for (const char* text : {"", "A", "A240507-Z", "B2405070042-Z", "A24050x0042-Z", "A2405070042-Y",
                           "A24050700!2-Z", "A2405070042-Z ", "A24050799999999999999999999-Z"}) {
    EXPECT_EQ(made.ParseId(text).code(), Code::kInvalid) << text;
  }
  EXPECT_FALSE(made.ParseId(std::string(100'000, '1')).ok());
}

}  // namespace
}  // namespace firn
