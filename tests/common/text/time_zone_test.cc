#include "common/text/time_zone.h"

#include <ctime>
#include <fstream>
#include <iterator>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/text/posix_tz.h"
#include "common/text/tzif.h"
#include "common/time/entropy.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using std::chrono::seconds;
using std::chrono::sys_seconds;
using ::testing::HasSubstr;

constexpr char kZoneFolder[] = "/usr/share/zoneinfo/";

std::string ZoneFile(const std::string& name) {
  std::ifstream file(kZoneFolder + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The C library's view of a zone, which only a test may use: it depends on the process's TZ.
class CLibraryZone {
 public:
  explicit CLibraryZone(const std::string& name) {
    setenv("TZ", (":" + name).c_str(), 1);
    tzset();
  }
  ~CLibraryZone() {
    unsetenv("TZ");
    tzset();
  }

  TimeZone::LocalType At(WallMs t) const {
    const time_t at = t.ms() / 1000;
    std::tm local{};
    localtime_r(&at, &local);
    return {seconds(local.tm_gmtoff), local.tm_isdst > 0, local.tm_zone};
  }
};

class NamedZone : public ::testing::TestWithParam<const char*> {};

TEST_P(NamedZone, AgreesWithTheCLibraryFrom1970To2400) {
  const Result<TimeZone> zone = TimeZone::Load(GetParam());
  ASSERT_TRUE(zone.ok()) << zone.status();
  const CLibraryZone expected(GetParam());
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int i = 0; i < 1000; ++i) {
    const WallMs t(static_cast<int64_t>(entropy.Below(13'569'465'600)) * 1000);
    ASSERT_EQ(zone->At(t), expected.At(t)) << FormatRfc3339(t);
  }
}

TEST_P(NamedZone, AgreesWithTheCLibraryEveryHalfHourOfAYearOfRules) {
  const Result<TimeZone> zone = TimeZone::Load(GetParam());
  ASSERT_TRUE(zone.ok()) << zone.status();
  const CLibraryZone expected(GetParam());
  for (WallMs t = At("2044-12-25T00:00:00Z"); t < At("2046-01-05T00:00:00Z");
       t += std::chrono::minutes(30)) {
    ASSERT_EQ(zone->At(t), expected.At(t)) << FormatRfc3339(t);
  }
}

INSTANTIATE_TEST_SUITE_P(Zones, NamedZone,
                         ::testing::Values("Asia/Shanghai", "Europe/Berlin", "Europe/Dublin",
                                           "America/New_York", "America/St_Johns",
                                           "Australia/Lord_Howe", "Pacific/Chatham",
                                           "Asia/Kathmandu", "Africa/Casablanca", "America/Nuuk",
                                           "Asia/Gaza", "Pacific/Apia", "America/Santiago",
                                           "Etc/GMT+12", "Asia/Tehran"));

TEST(TimeZoneTest, KnowsFixedOffsets) {
  const WallMs t = At("2024-01-01T00:00:00Z");
  EXPECT_EQ(TimeZone::Utc().At(t).offset, seconds(0));
  EXPECT_EQ(TimeZone::Load("+08:00")->At(t).offset, std::chrono::hours(8));
  EXPECT_EQ(TimeZone::Load("-04:30")->At(t).offset, -std::chrono::minutes(270));
  EXPECT_EQ(TimeZone::Load("Asia/Shanghai")->CivilAt(t).hour, 8);
}

TEST(TimeZoneTest, RefusesNamesThatLeaveTheFolder) {
  for (const char* name :
       {"", "/", "/etc/passwd", "../../../etc/passwd", "Asia/../UTC", "Asia//Shanghai", "Asia/",
        ".", "Asia/.hidden", "+8", "+24:00", "+08:60", "08:00", "Asia/Shanghai ", "a\nb",
        "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}) {
    EXPECT_EQ(TimeZone::Load(name).code(), Code::kInvalid) << name;
  }
  EXPECT_FALSE(TimeZone::Load(std::string_view("UTC\0", 4)).ok());
}

TEST(TimeZoneTest, ReportsInvalidZones) {
  EXPECT_EQ(TimeZone::Load("Asia/Atlantis").code(), Code::kNotFound);
  EXPECT_EQ(TimeZone::Load("Asia").code(), Code::kNotFound);
  EXPECT_EQ(TimeZone::Load("zone1970.tab").code(), Code::kInvalid);
  EXPECT_EQ(TimeZone::Load("leapseconds").code(), Code::kCorrupt);
}

TEST(TimeZoneTest, LoadsEachFileOnce) {
  const TempDir folder;
  const WallMs t(1'700'000'000'000);
  const auto write = [&](const char* zone) {
    std::ofstream(folder / "Mine", std::ios::binary) << ZoneFile(zone);
  };
  EXPECT_EQ(TimeZone::Load("Mine", folder.path()).code(), Code::kNotFound) << "may be there later";
  write("Asia/Shanghai");
  EXPECT_EQ(TimeZone::Load("Mine", folder.path())->At(t).offset, std::chrono::hours(8));
  write("Asia/Tokyo");
  EXPECT_EQ(TimeZone::Load("Mine", folder.path())->At(t).offset, std::chrono::hours(8));
}

TEST(TzifTest, RefusesAFileTruncatedAnywhere) {
  const std::string whole = ZoneFile("Europe/Berlin");
  ASSERT_TRUE(Tzif::Parse(whole).ok());
  for (size_t n = 0; n < whole.size(); ++n) {
    ASSERT_EQ(Tzif::Parse(whole.substr(0, n)).code(), Code::kCorrupt) << n;
  }
}

TEST(TzifTest, ChecksEveryCount) {
  const std::string whole = ZoneFile("Europe/Berlin");
  for (size_t at = 20; at < 44; ++at) {
    for (const char byte : {'\x7f', '\xff', '\x01'}) {
      std::string bad = whole;
      bad[at] = byte;
      static_cast<void>(Tzif::Parse(bad));  // only the sanitizers judge the result
    }
  }
}

TEST(TzifTest, SurvivesChangedBytes) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  const std::string whole = ZoneFile("America/New_York");
  for (int i = 0; i < 5000; ++i) {
    std::string bad = whole;
    for (uint64_t changes = 1 + entropy.Below(4); changes > 0; --changes) {
      bad[entropy.Below(bad.size())] = static_cast<char>(entropy.Next());
    }
    const Result<std::shared_ptr<const Tzif>> zone = Tzif::Parse(bad);
    if (zone.ok()) static_cast<void>((*zone)->At(sys_seconds(seconds(4'000'000'000))));
  }
}

TEST(PosixTzTest, ReadsTheRulesThatZoneFilesHave) {
  const std::tuple<std::string_view, std::string_view, int, bool> cases[] = {
      {"UTC0", "2024-07-01T00:00:00Z", 0, false},
      {"<+0330>-3:30", "2024-07-01T00:00:00Z", 12600, false},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2024-03-31T00:59:59Z", 3600, false},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2024-03-31T01:00:00Z", 7200, true},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2024-10-27T00:59:59Z", 7200, true},
      {"CET-1CEST,M3.5.0,M10.5.0/3", "2024-10-27T01:00:00Z", 3600, false},
      {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2024-01-01T00:00:00Z", 39600, true},
      {"AEST-10AEDT,M10.1.0,M4.1.0/3", "2024-07-01T00:00:00Z", 36000, false},
      {"IST-1GMT0,M10.5.0,M3.5.0/1", "2024-01-01T00:00:00Z", 0, true},
      {"<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2024-07-01T00:00:00Z", -3600, true},
      {"XXX3EDT4,0/0,J365/23", "2024-12-31T23:30:00Z", -14400, true},
      {"AAA0BBB,J60,J300", "2024-03-01T01:59:59Z", 0, false},
      {"AAA0BBB,J60,J300", "2024-03-01T02:00:00Z", 3600, true},
      {"AAA0BBB,59,300", "2024-02-29T02:00:00Z", 3600, true},
  };
  for (const auto& [rule, time, offset, is_dst] : cases) {
    const Result<PosixTz> zone = PosixTz::Parse(rule);
    ASSERT_TRUE(zone.ok()) << rule;
    const TimeZone::LocalType& type = zone->At(sys_seconds(seconds(At(time).ms() / 1000)));
    EXPECT_EQ(type.offset, seconds(offset)) << rule << " " << time;
    EXPECT_EQ(type.is_dst, is_dst) << rule << " " << time;
  }
}

TEST(PosixTzTest, RefusesOtherTexts) {
  for (const char* rule :
       {"", "UTC", "UT0", "1UTC0", "UTC25", "UTC0x", "CET-1CEST", "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0", "CET-1CEST,M3.6.0,M10.5.0", "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0/168", "CET-1CEST,J0,J1", "CET-1CEST,J366,J1", "CET-1CEST,366,1",
        "<+08-8", "<>-8", "CET-1CEST,M3.5.0,M10.5.0/3,", ":Europe/Berlin"}) {
    EXPECT_EQ(PosixTz::Parse(rule).code(), Code::kCorrupt) << rule;
  }
}

}  // namespace
}  // namespace firn
