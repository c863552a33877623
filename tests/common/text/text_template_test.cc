#include "common/text/text_template.h"

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

TEST(TextTemplateTest, TheDateIsThatOfTheZone) {
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
  // None of the tag's, and still no two alike.
  EXPECT_EQ(order.Format(INT64_MAX, kIssued), "ORD-9223372036854-775807");
  EXPECT_LE(order.Format(INT64_MAX, kIssued).size(), order.length_max());
  for (const char* text :
       {"{period}", "{count}", "{period}{count}{count}", "{period}{count}{id}"}) {
    EXPECT_FALSE(made(text).ok()) << text;
  }
  EXPECT_THAT(TextTemplate::Parse("{period}{count}").status().message(), HasSubstr("dated tags"));
}

TEST(TextTemplateTest, RefusesTextsThatCouldRepeatAndSaysWhy) {
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
      {"{date:}{id}", "nothing of a date"},
      {"{date:x%%}{id}", "nothing of a date"},
      {"{date}{id}", "neither"},
      {"{ID}", "neither"},
      {"{id }", "neither"},
      {"{}{id}", "neither"},
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

// Templates full of digits beside the id, where a text would be ambiguous if it could be.
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

TEST(TextTemplateTest, TwoIdsNeverShareATextWhateverTheirTimes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  RandomTemplates templates(entropy);
  for (int i = 0; i < 60; ++i) {
    const std::string text = templates.Next();
    const TextTemplate made = TextTemplate::Parse(text).value();
    std::unordered_map<std::string, int64_t> seen;
    for (int n = 0; n < 4000; ++n) {
      // Short ids are all there, so that texts of different lengths get every chance to meet.
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

TEST(TextTemplateTest, WidthsHoldForEveryTimeThereIs) {
  const TextTemplate made =
      TextTemplate::Parse("{date:%Y%y%m%d%j%H%M%S%L}{id}", TimeZone::Load("+23:59").value())
          .value();
  for (const int64_t ms : {INT64_MIN, kCalendarBegin.ms(), int64_t{-1}, int64_t{0},
                           kCalendarEnd.ms() - 1, kCalendarEnd.ms(), INT64_MAX}) {
    EXPECT_EQ(made.Format(5, WallMs(ms)).size(), 4u + 2 + 2 + 2 + 3 + 2 + 2 + 2 + 3 + 1) << ms;
  }
}

TEST(TextTemplateTest, ReadsOnlyTextsOfItsOwn) {
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
