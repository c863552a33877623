// Tests `firn restore` on a directory registry: what it lifts, repairs, re-creates and keeps.

#include <cstdlib>
#include <fstream>

#include "tests/support/json_of.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

using FirnRestoreTest = FirnClusterTest;

// The effect of `restore --tag_gap=1000` on the ledger of a segment tag whose node contains `node`.
struct Lifting {
  const char* tag;
  const char* node;
  const char* high;
};

TEST_F(FirnRestoreTest, LiftsEveryLedgerAboveNumbersThatMayBeInUse) {
  Init();
  constexpr Lifting kLiftings[] = {
      {"short", R"({"strategy":"segment","high":5001,"step":50,"step_max":400})", "6001"},
      // A range that no server reports has at most step_max numbers; the gap is twice that.
      {"long", R"({"strategy":"segment","high":5001,"step":50,"step_max":4000})", "13001"},
      {"usual", R"({"strategy":"segment","high":5001})", "200005001"},
      // The tag before its first range was taken.
      {"new", R"({"strategy":"segment","high":0,"step":50,"step_max":400})", "1001"},
      // The start was raised.
      {"raised", R"({"strategy":"segment","high":100,"start":7000,"step":50,"step_max":400})",
       "8000"},
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

// The gap, or the largest ranges, have more numbers than the tag has left.
TEST_F(FirnRestoreTest, AsksForTheNumberOfATagThatTheGapWouldEnd) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "plugins=obfuscate", "obfuscate.width=8",
                  "obfuscate.key=k1", "obfuscate.check=c6a13b", "--force"})
                .exit_code,
            0);
  const std::string node = R"({"strategy":"segment","plugins":["obfuscate"],"obfuscate.width":8,)"
                           R"("obfuscate.key":"k1","obfuscate.check":"c6a13b","high":1001})";
  Break("/tags/order", node);
  const Json before = FirnJson({"audit"});
  for (const char* given : {"", "order=1000"}) {
    std::vector<std::string> restore{"restore", "--workers=4"};
    if (*given != 0) restore.emplace_back(given);
    const Finished refused = Firn(restore);
    EXPECT_EQ(refused.exit_code, 4) << refused.out;
    EXPECT_NE(refused.err.find(" order=START_ABOVE_1000,plugins=obfuscate"), std::string::npos)
        << refused.err;
  }
  EXPECT_EQ(FirnJson({"audit"}), before);
  FirnJson({"restore", "--workers=4", "order=5001"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "5001");
}

TEST_F(FirnRestoreTest, WarnsOfTagsThatNoServerReports) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step_max=4000"}).exit_code, 0);
  const Finished restored = Firn({"restore", "--workers=4", "--tag_gap=9000"});
  EXPECT_NE(restored.out.find("WARNING: no server reports the ledger of tag order"),
            std::string::npos)
      << restored.out;
  EXPECT_NE(restored.out.find("9000"), std::string::npos) << restored.out;
}

// A tag's node is lost: the printed command repairs it, without a second call.
TEST_F(FirnRestoreTest, RecreatesALostTagFromItsArgument) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  Announce({.high = {{"order", 7'001}}});
  Put(Write::Erase("/tags/order", Write::kAnyVersion));
  const std::string word = "order=200007001";
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find(" " + word), std::string::npos) << audit.out;

  const Finished refused = Firn({"restore", "--workers=4"});
  EXPECT_EQ(refused.exit_code, 4) << "servers would freeze the cluster again";
  EXPECT_NE(refused.err.find("firn restore --registry=" + registry_), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find(" " + word), std::string::npos) << refused.err;
  FirnJson({"restore", "--workers=4", word + ",step=50,step_max=400,plugins=history"});
  const Json tag = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(tag.at("start"), "200007001");
  EXPECT_EQ(tag.at("step"), "50");
  EXPECT_EQ(tag.at("plugins"), "history");
  EXPECT_EQ(FirnJson({"audit"}, 1).at("faults").size(), 1u) << "the provider that is not ephemeral";
}

TEST_F(FirnRestoreTest, ARecreatedClusterHasTheDefaultTag) {
  const std::vector<std::string> restore{"restore", "--workers=4", "--layout=firn"};
  const Finished restored = Firn(restore);
  EXPECT_NE(restored.out.find("tag default exists"), std::string::npos) << restored.out;
  EXPECT_EQ(FirnJson({"tags", "show", "default"}).at(0).at("strategy"), "snowflake");

  registry_ += "2";
  std::vector<std::string> said = restore;
  said.push_back("default=0,strategy=snowflake,plugins=history");
  FirnJson(said);
  EXPECT_EQ(FirnJson({"tags", "show", "default"}).at(0).at("plugins"), "history");
}

TEST_F(FirnRestoreTest, AnArgumentForAnExistingTagOnlyLiftsIt) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  FirnJson({"restore", "--workers=4", "--tag_gap=10", "order=5000,step=7"});
  const Json tag = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(tag.at("high"), "5000");
  EXPECT_EQ(tag.at("step"), "50");
  EXPECT_EQ(Firn({"restore", "--workers=4", "order"}).exit_code, 2);
}

// Other servers, and the operator, may know of higher numbers than the server that printed the
// command.
TEST_F(FirnRestoreTest, ALostTagContinuesAboveEveryReportOfIt) {
  Init();
  Announce({.high = {{"order", 7'001}}});
  FirnJson({"restore", "--workers=4", "--tag_gap=1000", "--tag_high=bill=6000",
            "order=5000,step=50,step_max=400", "bill=5000,step=50,step_max=400",
            "user=5000,step=50,step_max=400"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "8001");
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("high"), "7001");
  EXPECT_EQ(FirnJson({"tags", "show", "user"}).at(0).at("high"), "5000");
}

// The registry lost an edit, and ids in the edited form exist.
TEST_F(FirnRestoreTest, AnUnusedTagGetsTheFormOfItsArgument) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "create", "bill", "text=n{id:03}"}).exit_code, 0);
  FirnJson({"restore", "--workers=4", "--tag_gap=1000",
            "order=5000,step=7,step_max=9,text=n%7Bid%7D", "bill=5000,strategy=segment"});
  const Json order = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(order.at("text"), "n{id}");
  EXPECT_EQ(order.at("high"), "5000");
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("text"), "");
}

// Ids may exist in both forms, so the tag keeps its present one.
TEST_F(FirnRestoreTest, ReportsAndIgnoresAnotherFormForAUsedTag) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "text=n{id}"}).exit_code, 0);
  FirnJson({"restore", "--workers=4", "order=5000"});  // a number alone says nothing of the form
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("text"), "n{id}");
  const Finished told = Firn({"restore", "--workers=4", "order=600000000,step=7"});
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_NE(told.out.find("WRONG: tag \"order\": text: fixed"), std::string::npos) << told.out;
  EXPECT_FALSE(FirnJson({"audit"}).at("cluster").at("frozen").boolean());
  const Json order = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(order.at("text"), "n{id}");
  EXPECT_EQ(order.at("high"), "600000000");
}

TEST_F(FirnRestoreTest, ASecondRestoreWithoutNewFactsChangesNothing) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  const std::vector<std::string> command{"restore", "--workers=4", "--bound_ms=7", "order=900",
                                         "--tag_high=order=3"};
  const Json first = FirnJson(command);
  const Json audit = FirnJson({"audit"});
  const Json tag = FirnJson({"tags", "show", "order"});
  const Json second = FirnJson(command);
  EXPECT_TRUE(second.at("nothing_new").boolean());
  EXPECT_EQ(second.at("floor_ms"), first.at("floor_ms"));
  EXPECT_EQ(FirnJson({"audit"}), audit);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}), tag);

  const std::string far = "--bound_ms=" + std::to_string(NumberOf(first.at("floor_ms")) + 1);
  const std::vector<std::string> news[] = {
      {far},      {"--tag_high=order=5000000"}, {"order=9000000"}, {"user=5"}, {"--retire=5"},
      {"--again"}};
  int64_t floor = NumberOf(first.at("floor_ms"));
  for (const auto& more : news) {
    std::vector<std::string> again{"restore", "--workers=4"};
    again.insert(again.end(), more.begin(), more.end());
    const int64_t lifted = NumberOf(FirnJson(again).at("floor_ms"));
    EXPECT_GT(lifted, floor) << more.front();
    floor = lifted;
  }
}

TEST_F(FirnRestoreTest, ReportsAnAbsurdBoundAndRetiresItsMachineId) {
  Init();
  Announce({.machine = MachineId(5),
            .bound = SystemClock().Wall() + Milliseconds(int64_t{3} * 86'400'000)});
  const Finished restored = Firn({"restore", "--workers=4"});
  EXPECT_EQ(restored.exit_code, 1);
  for (const char* said : {"retired rack 1 worker 1", "machine id 5 is retired"}) {
    EXPECT_NE(restored.out.find(said), std::string::npos) << restored.out;
  }
}

// One file of the registry is truncated.
TEST_F(FirnRestoreTest, ReportsAndRepairsDamagedFiles) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  const std::string place = registry_.substr(6);
  for (const char* node : {"/machines/0", "/machines/0/1", "/clock", "/tags", "/tags/order"}) {
    std::ofstream(place + node + "/node") << "firn-node half";
  }
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1) << audit.err;
  for (const char* node : {"/machines/0/1/node", "/clock/node", "/tags/order/node"}) {
    EXPECT_NE(audit.out.find(place + node), std::string::npos) << node << "\n" << audit.out;
  }
  const Finished restored = Firn({"restore", "--workers=4", "order=90000,step=50,step_max=400"});
  EXPECT_EQ(restored.exit_code, 0) << restored.err << restored.out;
  EXPECT_NE(restored.out.find("retired rack 0 worker 1"), std::string::npos) << restored.out;
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("start"), "90000");

  const std::string uuid = FirnJson({"audit"}).at("cluster").at("uuid").text();
  std::ofstream(place + "/node") << "firn-node half";
  EXPECT_EQ(Firn({"audit"}).exit_code, 1);
  EXPECT_EQ(Firn({"restore", "--workers=4"}).exit_code, 6)
      << "the cluster of these data is unknown";
  FirnJson({"restore", "--workers=4", "--layout=firn", "--uuid=" + uuid});
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
}

TEST_F(FirnRestoreTest, UsesBoundsFromTheCommandLine) {
  const int64_t hour_ahead = SystemClock().Wall().ms() + 3'600'000;
  const int64_t year_ahead = hour_ahead + int64_t{365} * 86'400'000;
  const std::string both =
      "--bound_ms=" + std::to_string(year_ahead) + ",7," + std::to_string(hour_ahead);
  EXPECT_EQ(Firn({"restore", "--workers=4", "--layout=firn", "--bound_ms=7,x"}).exit_code, 2);
  const Json restored = FirnJson({"restore", "--workers=4", "--layout=firn", both}, 1);
  EXPECT_EQ(restored.at("floor_ms"), hour_ahead + 3 * 600'000);
  EXPECT_EQ(restored.at("ignored_bounds_ms"), Json::array({year_ahead}));
}

struct ReportedSkew {
  int64_t ms;
  bool counts;
};

// A skew of more than a day is an operator's error, and would start all ids that far ahead.
TEST_F(FirnRestoreTest, IgnoresAnAbsurdSkewThatAServerReports) {
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
    const int64_t floor =
        NumberOf(FirnJson({"restore", "--workers=4"}, skew.counts ? 0 : 1).at("floor_ms"));
    const int64_t counted = (skew.counts ? std::abs(skew.ms) : 10'000) + 3 * 600'000;
    EXPECT_GE(floor, before + counted);
    EXPECT_LE(floor, SystemClock().Wall().ms() + counted);
  }
}

TEST_F(FirnRestoreTest, UsesHighestNumbersFromTheCommandLine) {
  Init();
  for (const char* tag : {"order", "a b"}) {
    EXPECT_EQ(Firn({"tags", "create", tag, "step=50", "step_max=400"}).exit_code, 0);
  }
  for (const char* said : {"order", "order=", "order=x", "order=0", "order=-1", "=5", "a b=5",
                           "order=9223372036854775807", "order=1,,"}) {
    EXPECT_EQ(Firn({"restore", "--workers=4", std::string("--tag_high=") + said}).exit_code, 2)
        << said;
  }
  EXPECT_FALSE(FirnJson({"audit"}).at("cluster").at("frozen").boolean());
  FirnJson({"restore", "--workers=4", "--tag_gap=1000", "--tag_high=order=7,a+b=70,order=5000"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "6001");
  EXPECT_EQ(FirnJson({"tags", "show", "a b"}).at(0).at("high"), "1071");
}

TEST_F(FirnRestoreTest, RefusesNegativeGapsAndWindows) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order"}).exit_code, 0);
  for (const char* flag : {"--tag_gap=-1", "--claim_window_ms=-1", "--skew_max_ms=-1"}) {
    EXPECT_EQ(Firn({"restore", "--workers=4", flag}).exit_code, 2) << flag;
  }
  EXPECT_FALSE(FirnJson({"audit"}).at("cluster").at("frozen").boolean());
}

TEST_F(FirnRestoreTest, RefusesReservationsThatTheLayoutLacksBeforeItWritesAnything) {
  Init();
  const auto cluster = [this] { return FirnJson({"audit"}).at("cluster"); };
  const Json before = cluster();
  for (const std::string& word :
       std::vector<std::string>{"9999=old", "0-1024=old", "1", "1=" + std::string(201, 'x')}) {
    EXPECT_EQ(Firn({"restore", "--workers=4", "--reserve=" + word}).exit_code, 2) << word;
    EXPECT_EQ(cluster(), before) << word;
  }
}

TEST_F(FirnRestoreTest, LiftsLedgersThatAReportHadNoRoomToName) {
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

}  // namespace
}  // namespace firn
