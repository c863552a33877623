#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "registry/blocking_coordinator.h"
#include "registry/open_coordinator.h"
#include "registry/provider.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using Json = nlohmann::json;

// The program on a directory registry of its own.
class FirnClusterTest : public testing::Test {
 protected:
  Finished Firn(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), BuiltProgram("firn"));
    arguments.push_back("--registry=" + registry_);
    return RunToEnd(arguments);
  }

  Json FirnJson(std::vector<std::string> arguments, int exit_code = 0) {
    arguments.push_back("--json");
    const Finished finished = Firn(std::move(arguments));
    EXPECT_EQ(finished.exit_code, exit_code) << finished.err << finished.out;
    return Json::parse(finished.out, nullptr, false);
  }

  void Init() { FirnJson({"init", "--brand-new", "--workers=4"}); }

  std::string WriteFile(const std::string& text) {
    const std::string path = folder_ / "tags.ini";
    std::ofstream(path) << text;
    return path;
  }

  // What somebody else does to the tree behind everybody's back.
  void Break(const std::string& path, const std::string& data) {
    Put(Write::Set(path, data, Write::kAnyVersion));
  }
  void Put(const Write& write) {
    auto coordinator = OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy());
    ASSERT_TRUE(coordinator.ok()) << coordinator.status();
    BlockingCoordinator registry(**coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(Milliseconds(30'000)).ok());
    const WriteOutcome outcome = registry.Multi({write});
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }

  // What a server that runs says of itself.
  void Announce(const ProviderReport& report) {
    for (const auto path : {kServicePath, kProvidersPath}) {
      Put(Write::Create(std::string(path), "", Lifetime::kPersistent));
    }
    Put(Write::Create(std::string(kProvidersPath) + "/" + ProviderNodeName({.address = "h:1"}),
                      FormatReport(report), Lifetime::kPersistent));
  }

  TempDir folder_;
  std::string registry_ = "dir://" + (folder_ / "registry");
};

TEST_F(FirnClusterTest, ABrandNewClusterIsSound) {
  Init();
  const Json audit = FirnJson({"audit", "--all"});
  EXPECT_EQ(audit.at("machines").size(), 16u);  // four workers in each of four racks
  EXPECT_EQ(audit.at("faults").size(), 0u);
  EXPECT_EQ(audit.at("cluster").at("layout"), "firn");
}

TEST_F(FirnClusterTest, AClusterIsMadeOnce) {
  Init();
  EXPECT_EQ(Firn({"init", "--brand-new", "--workers=4"}).exit_code, 4);
}

TEST_F(FirnClusterTest, WithoutBrandNewTheFloorIsLifted) {
  const Json made = FirnJson({"init", "--workers=4"});
  EXPECT_TRUE(made.at("root_made"));
  const Json audit = FirnJson({"audit"});
  EXPECT_EQ(audit.at("cluster").at("floor_ms"), made.at("floor_ms"));
  EXPECT_GT(made.at("floor_ms").get<int64_t>(), SystemClock().Wall().ms());
}

TEST_F(FirnClusterTest, ALostClusterIsMadeAnewUnderItsOwnUuid) {
  const std::string uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  EXPECT_EQ(Firn({"restore", "--workers=4", "--layout=firn", "--uuid=nonsense"}).exit_code, 2);
  EXPECT_EQ(Firn({"restore", "--workers=4", "--uuid=" + uuid}).exit_code, 2) << "of which layout?";
  EXPECT_EQ(FirnJson({"restore", "--workers=4", "--layout=firn", "--uuid=" + uuid}).at("uuid"),
            uuid);
  EXPECT_EQ(FirnJson({"restore", "--workers=4", "--uuid=" + uuid}).at("uuid"), uuid);
  const std::string other = "7f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  EXPECT_EQ(Firn({"restore", "--workers=4", "--uuid=" + other}).exit_code, 4);
}

TEST_F(FirnClusterTest, AnAuditOfNothingSaysSo) {
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find("WRONG"), std::string::npos) << audit.out;
}

TEST_F(FirnClusterTest, ABrokenRecordIsFoundAndRestoredAway) {
  Init();
  Break("/machines/0/1", "{\"nonce\":");
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find("WRONG"), std::string::npos) << audit.out;
  FirnJson({"restore", "--workers=4"});
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
}

TEST_F(FirnClusterTest, TagsAreAppliedShownAndKept) {
  Init();
  const std::string file = WriteFile(
      "[order]\nstrategy = segment\nstart = 100\nstep = 50\n[\"a/b c\"]\nstrategy = snowflake\n");
  EXPECT_EQ(FirnJson({"tags", "apply", file, "--dry_run"}).at("done"), false);
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 0u);
  EXPECT_EQ(FirnJson({"tags", "apply", file}).at("done"), true);
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 2u);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("step"), "50");
  EXPECT_EQ(FirnJson({"tags", "apply", file}).at("changes").size(), 0u);

  const Finished shown = Firn({"tags", "show", "order", "a/b c"});
  EXPECT_EQ(Firn({"tags", "apply", WriteFile(shown.out)}).exit_code, 0) << shown.out;
}

TEST_F(FirnClusterTest, AFileIsCheckedWholeBeforeAnythingIsDone) {
  Init();
  const Finished refused = Firn({"tags", "apply",
                                 WriteFile("[good]\nstrategy = segment\n[bad]\nstep = x\n"
                                           "colour = blue\n")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("line 4"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("line 5"), std::string::npos) << refused.err;
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 0u);
}

TEST_F(FirnClusterTest, AFileThatFailsOnTheWaySaysHowFarItGot) {
  FirnJson({"init", "--workers=4"});  // perhaps it was lost: tags want an explicit start
  const Finished stopped = Firn({"tags", "apply",
                                 WriteFile("[first]\nstrategy = segment\nstart = 1\n"
                                           "[second]\nstrategy = segment\n"
                                           "[third]\nstrategy = segment\nstart = 1\n")});
  EXPECT_EQ(stopped.exit_code, 2);
  for (const char* said : {"+ third: new", "done: first\n", "not done: second", "explicit start"}) {
    EXPECT_NE(stopped.err.find(said), std::string::npos) << said << " is not in " << stopped.err;
  }
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 1u);
}

TEST_F(FirnClusterTest, ATagIsMadeChangedAndDisabled) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "create", "order"}).exit_code, 4);
  EXPECT_EQ(Firn({"tags", "set", "order", "step=60"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "set", "order", "step=0"}).exit_code, 2);
  EXPECT_EQ(Firn({"tags", "set", "order", "high=0"}).exit_code, 2);
  EXPECT_EQ(Firn({"tags", "disable", "order"}).exit_code, 0);
  const Json tag = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(tag.at("step"), "60");
  EXPECT_EQ(tag.at("disabled"), "true");
  EXPECT_EQ(Firn({"tags", "show", "user"}).exit_code, 4);
}

// What `restore --tag_gap=1000` makes of the ledger of a segment tag whose node holds `node`.
struct Lifting {
  const char* tag;
  const char* node;
  const char* high;
};

TEST_F(FirnClusterTest, RestoreLiftsEveryLedgerAboveWhatMayBeInUse) {
  Init();
  constexpr Lifting kLiftings[] = {
      {"short", R"({"strategy":"segment","high":5001,"step":50,"step_max":400})", "6001"},
      // A range of which nobody knows is at most step_max long, so the gap is twice that.
      {"long", R"({"strategy":"segment","high":5001,"step":50,"step_max":4000})", "13001"},
      {"usual", R"({"strategy":"segment","high":5001})", "200005001"},
      // As it was before the first range was taken.
      {"new", R"({"strategy":"segment","high":0,"step":50,"step_max":400})", "1001"},
      // Its start had been raised.
      {"raised", R"({"strategy":"segment","high":100,"start":7000,"step":50,"step_max":400})",
       "8000"},
      {"last", R"({"strategy":"segment","high":9223372036854775000,"step":50,"step_max":400})",
       "9223372036854775807"},
  };
  std::string file = "[clock]\nstrategy = snowflake\n";
  for (const Lifting& lifting : kLiftings)
    file += std::string("[") + lifting.tag + "]\nstrategy = segment\n";
  EXPECT_EQ(Firn({"tags", "apply", WriteFile(file)}).exit_code, 0);
  for (const Lifting& one : kLiftings) Break(std::string("/tags/") + one.tag, one.node);

  const Json restored = FirnJson({"restore", "--workers=4", "--tag_gap=1000"}).at("tags");
  EXPECT_EQ(restored.size(), std::size(kLiftings));  // snowflake tags have no ledger
  for (const Lifting& lifting : kLiftings) {
    const Json shown = FirnJson({"tags", "show", lifting.tag}).at(0);
    EXPECT_EQ(shown.at("high"), lifting.high) << lifting.node;
  }
}

TEST_F(FirnClusterTest, RestoreNamesTheTagsOfWhichNoServerReports) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step_max=4000"}).exit_code, 0);
  const Finished restored = Firn({"restore", "--workers=4", "--tag_gap=9000"});
  EXPECT_NE(restored.out.find("WARNING: no server reports the ledger of tag order"),
            std::string::npos)
      << restored.out;
  EXPECT_NE(restored.out.find("9000"), std::string::npos) << restored.out;
}

TEST_F(FirnClusterTest, RestoreTakesTheOperatorsWordForBounds) {
  const int64_t hour_ahead = SystemClock().Wall().ms() + 3'600'000;
  const int64_t year_ahead = hour_ahead + int64_t{365} * 86'400'000;
  const std::string both =
      "--bound_ms=" + std::to_string(year_ahead) + ",7," + std::to_string(hour_ahead);
  EXPECT_EQ(Firn({"restore", "--workers=4", "--layout=firn", "--bound_ms=7,x"}).exit_code, 2);
  const Json restored = FirnJson({"restore", "--workers=4", "--layout=firn", both}, 1);
  EXPECT_EQ(restored.at("floor_ms"), hour_ahead + 3 * 600'000);
  EXPECT_EQ(restored.at("ignored_bounds_ms"), Json({year_ahead}));
}

struct ReportedSkew {
  int64_t ms;
  bool counts;
};

// More than a day is somebody's error, and would put all ids that far ahead.
TEST_F(FirnClusterTest, RestoreCountsASkewThatAServerReportsOnlyWhenItIsSane) {
  constexpr int64_t kDayMs = 86'400'000;
  constexpr ReportedSkew kSkews[] = {
      {3'600'000, true}, {-kDayMs, true}, {kDayMs + 1, false}, {-INT64_MAX, false}};
  int servers = 0;
  for (const ReportedSkew& skew : kSkews) {
    SCOPED_TRACE(skew.ms);
    registry_ = "dir://" + (folder_ / ("registry" + std::to_string(++servers)));
    Init();
    Announce({.clock_skew_ms = skew.ms});
    const int64_t before = SystemClock().Wall().ms();
    const int64_t floor = FirnJson({"restore", "--workers=4"}, skew.counts ? 0 : 1).at("floor_ms");
    const int64_t counted = (skew.counts ? std::abs(skew.ms) : 10'000) + 3 * 600'000;
    EXPECT_GE(floor, before + counted);
    EXPECT_LE(floor, SystemClock().Wall().ms() + counted);
  }
}

TEST_F(FirnClusterTest, RestoreTakesTheOperatorsWordForNumbers) {
  Init();
  for (const char* tag : {"order", "a b"}) {
    EXPECT_EQ(Firn({"tags", "create", tag, "step=50", "step_max=400"}).exit_code, 0);
  }
  for (const char* said : {"order", "order=", "order=x", "order=0", "order=-1", "=5", "a b=5",
                           "order=9223372036854775807", "order=1,,"}) {
    EXPECT_EQ(Firn({"restore", "--workers=4", std::string("--tag_high=") + said}).exit_code, 2)
        << said;
  }
  EXPECT_FALSE(FirnJson({"audit"}).at("cluster").at("frozen").get<bool>());
  FirnJson({"restore", "--workers=4", "--tag_gap=1000", "--tag_high=order=7,a+b=70,order=5000"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "6001");
  EXPECT_EQ(FirnJson({"tags", "show", "a b"}).at(0).at("high"), "1071");
}

TEST_F(FirnClusterTest, RestoreRefusesNumbersThatWouldLowerWhatItLifts) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order"}).exit_code, 0);
  for (const char* flag : {"--tag_gap=-1", "--claim_window_ms=-1", "--skew_max_ms=-1"}) {
    EXPECT_EQ(Firn({"restore", "--workers=4", flag}).exit_code, 2) << flag;
  }
  EXPECT_FALSE(FirnJson({"audit"}).at("cluster").at("frozen").get<bool>());
}

TEST_F(FirnClusterTest, RestoreLiftsLedgersThatAServerHadNoRoomToName) {
  Init();
  for (const char* tag : {"big", "small"}) {
    EXPECT_EQ(Firn({"tags", "create", tag, "step=50", "step_max=400"}).exit_code, 0);
  }
  EXPECT_EQ(Firn({"tags", "create", "other", "strategy=snowflake"}).exit_code, 0);
  Announce({.high = {{"big", 9000}}, .high_others = 70});
  FirnJson({"restore", "--workers=4", "--tag_gap=1000"});
  EXPECT_EQ(FirnJson({"tags", "show", "big"}).at(0).at("high"), "10000");
  EXPECT_EQ(FirnJson({"tags", "show", "small"}).at(0).at("high"), "1070");
}

TEST_F(FirnClusterTest, ARegistryThatIsNoneIsAMistakeOfTheCall) {
  for (const char* registry : {"", "nonsense", "ftp://x", "zk://", "zk://h", "dir://relative"}) {
    const Finished refused = RunToEnd(
        {BuiltProgram("firn"), "audit", "--timeout_ms=300", std::string("--registry=") + registry});
    EXPECT_EQ(refused.exit_code, 2) << registry << ": " << refused.err;
  }
}

TEST_F(FirnClusterTest, ARegistryThatIsAwayIsWorthTryingLater) {
  const Finished later =
      RunToEnd({BuiltProgram("firn"), "audit", "--timeout_ms=300",
                "--registry=zk://127.0.0.1:" + std::to_string(FreePort()) + "/firn/test"});
  EXPECT_EQ(later.exit_code, 3) << later.err;
}

}  // namespace
}  // namespace firn
