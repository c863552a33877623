#include "registry/servers/provider.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

Provider SomeProvider() {
  return {.address = "10.0.0.1:7609",
          .application = "orders & more/x",
          .rack = 3,
          .since = WallMs(1700000000123),
          .pid = 4711,
          .build = "0.1.0+abc"};
}

ProviderReport SomeReport() {
  return {.phase = ServerPhase::kReady,
          .machine = MachineId(5),
          .bound = WallMs(1700000600000),
          .more = {{MachineId(0), WallMs(1700000500000)}, {MachineId(1023), WallMs(1)}},
          .lease_bound = WallMs(1700000900000),
          .window = Milliseconds(5'400'000),
          .clock_skew_ms = -17,
          .high = {{"order", 1000}, {"a \"tag\"/\xc3\xbc", 9007199254740993}},
          .stores = {{"registry", true}, {"cache", false}},
          .stand_ins = {"cache"},
          .plugins = {"limit", "rate"},
          .strategies = {"dated", "segment", "snowflake"},
          .refused = {{"order", "unsupported: this server has no store 'main'"}},
          .refused_others = 3,
          .outdated = {{"user", "store 'main' does not permit buffer = none"}},
          .unsupplied = {{"invoice", "store main: db:3306: TLS failed"}},
          .admin = "http://10.0.0.7:7610/",
          .overloaded = true,
          .history_lost = true,
          .clock_trouble = "the registry's clock is 1 h ahead",
          .grant_trouble = "no grant file: /dev/shm/firn-0 is not private"};
}

TEST(ProviderTest, NodeNameReadsBackAsWritten) {
  const std::string name = ProviderNodeName(SomeProvider());
  EXPECT_EQ(name.find('/'), std::string::npos);
  EXPECT_EQ(*ParseProviderNodeName(name), SomeProvider());
}

TEST(ProviderTest, NodeNameIsADubboProviderUrl) {
  EXPECT_TRUE(ProviderNodeName(SomeProvider())
                  .starts_with("thrift%3A%2F%2F10.0.0.1%3A7609%2Ffirn.IdService%3Fapplication%3D"));
}

TEST(ProviderTest, IgnoresUnknownParameters) {
  const auto provider = ParseProviderNodeName(
      "thrift%3A%2F%2Fh%3A1%2Ffirn.IdService%3Fdubbo%3D2.0.2%26rack%3D2%26methods%3Da%2Cb");
  ASSERT_TRUE(provider.ok()) << provider.status();
  EXPECT_EQ(provider->address, "h:1");
  EXPECT_EQ(provider->rack, 2u);
}

TEST(ProviderTest, RefusesForeignNamesWithAReason) {
  const std::string long_name =
      "thrift%3A%2F%2Fh%3A1%2Ffirn.IdService%3Fa%3D" + std::string(5000, 'x');
  for (const std::string& name :
       {std::string(), std::string("x"), std::string("%"), std::string("dubbo%3A%2F%2Fh%3A1"),
        std::string("thrift%3A%2F%2F%2Ffirn.IdService"),
        std::string("thrift%3A%2F%2Fh%2Ffirn.IdService"),
        std::string("thrift%3A%2F%2Fh%0A%3A1%2Ffirn.IdService"),
        std::string("thrift%3A%2F%2Fh%3A1%2Fother.Service"),
        std::string("thrift%3A%2F%2Fh%3A1%2Ffirn.IdService%3Frack%3D1024"),
        std::string("thrift%3A%2F%2Fh%3A1%2Ffirn.IdService%3Fpid%3D-1"),
        std::string("thrift%3A%2F%2Fh%3A1%2Ffirn.IdService%3Ftimestamp%3D1e9"), long_name}) {
    const Status refused = ParseProviderNodeName(name).status();
    EXPECT_FALSE(refused.ok()) << name;
    EXPECT_FALSE(refused.message().empty());
  }
}

TEST(ProviderReportTest, JsonReadsBackAsWritten) {
  EXPECT_EQ(*ParseReport(FormatReport(SomeReport())), SomeReport());
  EXPECT_EQ(*ParseReport(FormatReport({})), ProviderReport{});
}

TEST(ProviderReportTest, EachMachineIdHasItsOwnBound) {
  const ProviderReport report = SomeReport();
  EXPECT_EQ(report.BoundOf(MachineId(5)), WallMs(1700000600000));
  EXPECT_EQ(report.BoundOf(MachineId(0)), WallMs(1700000500000));
  EXPECT_EQ(report.BoundOf(MachineId(6)), std::nullopt);
  EXPECT_EQ(report.Held().size(), 3u);
  EXPECT_TRUE(ProviderReport{.bound = WallMs(7)}.Held().empty());
}

// Versions that support only one machine id per server read these two members.
TEST(ProviderReportTest, TheFirstMachineIdKeepsItsMembers) {
  const std::string json = FormatReport(SomeReport());
  EXPECT_NE(json.find(R"("machine":5)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("bound_ms":1700000600000)"), std::string::npos) << json;
}

TEST(ProviderReportTest, OmitsTagsWithoutNumbers) {
  ProviderReport report = SomeReport();
  const std::string without = FormatReport(report);
  report.high["idle"] = 0;
  EXPECT_EQ(FormatReport(report), without);
}

TEST(ProviderReportTest, TenThousandTagsFitAndEachHasALimit) {
  ProviderReport report = SomeReport();
  for (int i = 0; i < 10'000; ++i) {
    report.high["some.department/tag-" + std::to_string(i)] = int64_t{1} << (i % 50);
  }
  const std::string text = FormatReport(report);
  EXPECT_LT(text.size(), kHighBytesMax + 1024);
  const auto back = ParseReport(text);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_GT(back->high.size(), 1000u);
  for (const auto& [tag, high] : report.high) {
    // Each tag is listed exactly, or limited by `high_others`, which is at most the lowest listed
    // value.
    if (back->high.contains(tag)) {
      EXPECT_EQ(back->high.at(tag), high) << tag;
    }
    EXPECT_GE(back->HighOf(tag), high) << tag;
  }
  for (const auto& [tag, high] : back->high) EXPECT_GE(high, back->high_others) << tag;
}

TEST(ProviderReportTest, ManyRefusedTagsAreCutToAFewAndCounted) {
  ProviderReport report;
  for (int i = 0; i < 5'000; ++i)
    report.refused["tag-" + std::to_string(i)] = std::string(9'000, 'x');
  const auto back = ParseReport(FormatReport(report));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->refused.size(), kRefusedMax);
  EXPECT_EQ(back->refused_others, 5'000 - static_cast<int64_t>(kRefusedMax));
  for (const auto& [tag, why] : back->refused) EXPECT_EQ(why.size(), kRefusedBytesMax) << tag;
}

TEST(ProviderReportTest, KeepsTheRemedyOfALongReason) {
  const std::string remedy = "; check the server's certificate and these settings";
  const std::string why = "no_numbers: store main: db-1.example:5432: " + std::string(2'000, 'w');
  ProviderReport report{.reason = why + remedy, .clock_trouble = why + remedy};
  report.refused["order"] = report.outdated["order"] = report.unsupplied["order"] = why + remedy;
  const auto back = ParseReport(FormatReport(report));
  ASSERT_TRUE(back.ok()) << back.status();
  for (const std::string& shown : {back->reason, back->clock_trouble, back->refused.at("order"),
                                   back->outdated.at("order"), back->unsupplied.at("order")}) {
    EXPECT_LE(shown.size(), kReasonBytesMax);
    EXPECT_TRUE(shown.starts_with("no_numbers: store main: db-1.example:5432: w")) << shown;
    EXPECT_TRUE(shown.ends_with(remedy)) << shown;
  }
}

TEST(ProviderReportTest, RefusesEveryTruncatedReport) {
  const std::string whole = FormatReport(SomeReport());
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_FALSE(ParseReport(whole.substr(0, length)).ok()) << length;
  }
}

TEST(ProviderReportTest, RefusesInvalidDataWithAReason) {
  for (const char* json : {"[]",
                           "7",
                           "null",
                           "{}",
                           R"({"state":"fine"})",
                           R"({"state":7})",
                           R"({"state":"serving","machine":1024})",
                           R"({"state":"serving","machine":-1})",
                           R"({"state":"serving","bound_ms":"1"})",
                           R"({"state":"serving","bound_ms":1.5})",
                           R"({"state":"serving","bound_ms":18446744073709551615})",
                           R"({"state":"serving","more":{}})",
                           R"({"state":"serving","more":[7]})",
                           R"({"state":"serving","more":[{"machine":5}]})",
                           R"({"state":"serving","more":[{"machine":1024,"bound_ms":7}]})",
                           R"({"state":"serving","more":[{"machine":5,"bound_ms":-1}]})",
                           R"({"state":"serving","high":[]})",
                           R"({"state":"serving","high":{"a":-1}})",
                           R"({"state":"serving","high":{"a":"1"}})",
                           R"({"state":"serving","high_others":-1})"}) {
    EXPECT_EQ(ParseReport(json).code(), Code::kCorrupt) << json;
  }
  EXPECT_FALSE(ParseReport(std::string(1 << 20, ' ')).ok());
  EXPECT_FALSE(ParseReport(std::string(100'000, '[')).ok());
}

// Code that uses skews takes their absolute value, which overflows for the lowest 64-bit number.
TEST(ProviderReportTest, EveryParsedSkewHasAnAbsoluteValue) {
  const auto parsed = [](const std::string& skew) {
    return ParseReport(R"({"state":"serving","clock_skew_ms":)" + skew + "}");
  };
  EXPECT_EQ(parsed("-9223372036854775807")->clock_skew_ms, -INT64_MAX);
  EXPECT_EQ(parsed("9223372036854775807")->clock_skew_ms, INT64_MAX);
  EXPECT_EQ(parsed("-9223372036854775808").code(), Code::kCorrupt);
  EXPECT_EQ(parsed("9223372036854775808").code(), Code::kCorrupt);
}

TEST(ConfiguratorTest, JsonReadsBackAndMissingMembersMeanTheDefault) {
  const Configurator odd{.weight = 7, .disabled = true};
  EXPECT_EQ(*ParseConfigurator(FormatConfigurator(odd)), odd);
  EXPECT_EQ(*ParseConfigurator("{}"), Configurator{});
  const std::string later = R"({"weight":7,"disabled":true,"note":["of a later version"]})";
  EXPECT_EQ(FormatConfigurator(*ParseConfigurator(later)), later);
}

TEST(ConfiguratorTest, RefusesInvalidData) {
  for (const char* json : {"", "{", R"({"weight":-1})", R"({"weight":10001})", R"({"weight":"5"})",
                           R"({"disabled":1})"}) {
    EXPECT_FALSE(ParseConfigurator(json).ok()) << json;
  }
}

}  // namespace
}  // namespace firn
