// Tests `firn restore` on a directory registry: the data that it lifts, repairs, re-creates and
// keeps.

#include <cstdlib>
#include <fstream>

#include "common/time/civil_time.h"
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
      // The state of the tag before its first range was taken.
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

  const Json restored = FirnJson({"restore", "--set=workers=4", "--tag_gap=1000"}).at("tags");
  EXPECT_EQ(restored.size(), std::size(kLiftings));  // snowflake tags have no ledger
  for (const Lifting& lifting : kLiftings) {
    const Json shown = FirnJson({"tags", "show", lifting.tag}).at(0);
    EXPECT_EQ(shown.at("high"), lifting.high) << lifting.node;
  }
}

// The gap, or the largest range, has more numbers than the tag has left.
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
  const Finished asked = Firn({"restore"});
  EXPECT_EQ(asked.exit_code, 4) << asked.out;
  EXPECT_NE(asked.err.find(" --set=order.start=NUMBER"), std::string::npos) << asked.err;
  EXPECT_NE(asked.out.find("ids start at"), std::string::npos) << "the plan comes first";
  EXPECT_EQ(Firn({"restore", "--set=order.start=NUMBER"}).exit_code, 2);
  EXPECT_EQ(FirnJson({"audit"}), before);
  FirnJson({"restore", "--set=order.start=5001"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "5001");
}

TEST_F(FirnRestoreTest, WarnsOfTagsThatNoServerReports) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step_max=4000"}).exit_code, 0);
  const Finished restored = Firn({"restore", "--set=workers=4", "--tag_gap=9000"});
  EXPECT_NE(restored.out.find("WARNING: no server reports the ledger of tag order"),
            std::string::npos)
      << restored.out;
  EXPECT_NE(restored.out.find("9000"), std::string::npos) << restored.out;
}

// An answer below the number in the registry, a report or a document is a mistake, or belongs to
// another tag.
TEST_F(FirnRestoreTest, AnswersOnlyRaise) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  Announce({.high = {{"order", 7'001}}});
  const Json before = FirnJson({"audit"}, 1);
  for (const char* low : {"order.high=6999", "order.start=7000", "workers=3", "window=599999"}) {
    const Finished refused = Firn({"restore", "--again", std::string("--set=") + low});
    EXPECT_EQ(refused.exit_code, 4) << low << refused.out;
    EXPECT_NE(refused.err.find(low), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find("is below"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(FirnJson({"audit"}, 1), before);
}

TEST_F(FirnRestoreTest, RefusesAnswersThatItDoesNotUnderstandBeforeItWritesAnything) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order"}).exit_code, 0);
  const Json before = FirnJson({"audit"});
  for (const char* wrong : {"order",
                            "order.high",
                            "order.high=",
                            "order.high=x",
                            "order.high=0",
                            "order.high=-1",
                            ".high=5",
                            "a b.high=5",
                            "order.high=9223372036854775807",
                            "order.nothing=1",
                            "order.step=5",
                            "nothing=1",
                            "workers=0",
                            "workers=x",
                            "window=-1",
                            "window=864000000",
                            "floor=x",
                            "retire=x",
                            "reserve=9999=old",
                            "reserve=0-1024=old",
                            "reserve=1",
                            "default_strategy=segment",
                            "lease_share=101",
                            "tags=VALUE"}) {
    EXPECT_EQ(Firn({"restore", std::string("--set=") + wrong}).exit_code, 2) << wrong;
  }
  EXPECT_EQ(Firn({"restore", "--set=reserve=1=" + std::string(201, 'x')}).exit_code, 2);
  EXPECT_EQ(Firn({"restore", "--set=workers=4", "--set=workers=5"}).exit_code, 2);
  EXPECT_EQ(Firn({"restore", "order=5001,step=50"}).exit_code, 2) << "the form of earlier versions";
  EXPECT_EQ(Firn({"restore", "--set=ordre.start=5001"}).exit_code, 4) << "no such tag";
  for (const char* flag :
       {"--tag_gap=-1", "--skew_max_ms=-1", "--skew_max_ms=2600000000", "--tag_high=order=5"}) {
    EXPECT_EQ(Firn({"restore", flag}).exit_code, 2) << flag;
  }
  EXPECT_EQ(FirnJson({"audit"}), before);
}

// A tag's node is lost. Without the node, servers that have seen the tag's numbers would freeze the
// cluster again.
TEST_F(FirnRestoreTest, RecreatesALostTagAsItIsDefined) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  Announce({.high = {{"order", 7'001}}});
  Put(Write::Erase("/tags/order", Write::kAnyVersion));
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find("`trouble` in its /v1/status"), std::string::npos) << audit.out;

  const Finished refused = Firn({"restore"});
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_NE(refused.err.find("firn restore --registry=" + registry_), std::string::npos)
      << refused.err;
  EXPECT_NE(refused.err.find(" --set=order.strategy=STRATEGY"), std::string::npos) << refused.err;
  FirnJson({"restore", "--set=order.strategy=segment", "--set=order.step=50",
            "--set=order.step_max=400", "--set=order.plugins=history"});
  const Json tag = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(tag.at("start"), "1007001");
  EXPECT_EQ(tag.at("step"), "50");
  EXPECT_EQ(tag.at("plugins"), "history");
  EXPECT_EQ(FirnJson({"audit"}, 1).at("faults").size(), 1u) << "the provider that is not ephemeral";
}

TEST_F(FirnRestoreTest, ARecreatedClusterHasTheDefaultTag) {
  const std::vector<std::string> restore{"restore", "--set=workers=4", "--layout=firn"};
  const Finished restored = Firn(restore);
  EXPECT_NE(restored.out.find("tag default exists"), std::string::npos) << restored.out;
  EXPECT_EQ(FirnJson({"tags", "show", "default"}).at(0).at("strategy"), "snowflake");

  registry_ += "2";
  std::vector<std::string> said = restore;
  said.emplace_back("--set=default.strategy=snowflake");
  said.emplace_back("--set=default.plugins=history");
  FirnJson(said);
  EXPECT_EQ(FirnJson({"tags", "show", "default"}).at(0).at("plugins"), "history");
}

TEST_F(FirnRestoreTest, AnAnswerForAnExistingTagOnlyLiftsIt) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  FirnJson({"restore", "--tag_gap=10", "--set=order.start=5000", "--set=order.strategy=segment",
            "--set=order.step=7"});
  const Json tag = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(tag.at("high"), "5000");
  EXPECT_EQ(tag.at("step"), "50");
}

TEST_F(FirnRestoreTest, ALostTagContinuesAboveEveryReportOfIt) {
  Init();
  Announce({.high = {{"order", 7'001}}});
  std::vector<std::string> restore{"restore", "--tag_gap=1000", "--set=bill.high=6000",
                                   "--set=bill.start=5000", "--set=user.start=5000"};
  for (const std::string tag : {"order", "bill", "user"}) {
    for (const char* field : {"strategy=segment", "step=50", "step_max=400"}) {
      restore.push_back("--set=" + tag + "." + field);
    }
  }
  FirnJson(restore);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "8001");
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("high"), "7001");
  EXPECT_EQ(FirnJson({"tags", "show", "user"}).at(0).at("high"), "5000");
}

// The registry lost an edit, and ids in the edited form exist.
TEST_F(FirnRestoreTest, AnUnusedTagGetsTheFormThatIsGiven) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "create", "bill", "text=n{id:03}"}).exit_code, 0);
  FirnJson({"restore", "--tag_gap=1000", "--set=order.start=5000", "--set=order.strategy=segment",
            "--set=order.step=7", "--set=order.step_max=9", "--set=order.text=n{id}",
            "--set=bill.start=5000", "--set=bill.strategy=segment"});
  const Json order = FirnJson({"tags", "show", "order"}).at(0);
  EXPECT_EQ(order.at("text"), "n{id}");
  EXPECT_EQ(order.at("high"), "5000");
  EXPECT_EQ(FirnJson({"tags", "show", "bill"}).at(0).at("text"), "");
}

// Ids may exist in both forms.
TEST_F(FirnRestoreTest, RefusesAnotherFormForAUsedTagBeforeItWritesAnything) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "text=n{id}"}).exit_code, 0);
  FirnJson({"restore", "--set=order.start=5000"});  // a number does not determine the form
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("text"), "n{id}");
  const Json before = FirnJson({"audit"});
  std::vector<std::string> restore{"restore", "--set=order.start=600000000",
                                   "--set=order.strategy=segment"};
  const Finished refused = Firn(restore);
  EXPECT_EQ(refused.exit_code, 4) << refused.out;
  EXPECT_NE(refused.err.find("has tag 'order' in another form"), std::string::npos) << refused.err;
  EXPECT_EQ(FirnJson({"audit"}), before);
  restore.emplace_back("--set=order.text=n{id}");
  FirnJson(restore);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "600000000");
}

// No document identifies the lost cluster. The first run is refused after it has frozen the
// cluster, because a server reports a tag without a definition.
TEST_F(FirnRestoreTest, ARepeatedRunWithoutDocumentsAlsoWaitsForReports) {
  Init();
  Announce({.high = {{"late", 7}}});
  const Finished first = Firn({"restore", "--uuid=6f9619ff-8b86-4d11-b42d-00c04fc964ff",
                               "--layout=firn", "--set=default_strategy=none", "--set=reserve=none",
                               "--set=tags=none", "--set=window=600000"});
  EXPECT_EQ(first.exit_code, 4) << first.out << first.err;
  EXPECT_TRUE(FirnJson({"audit"}, 1).at("cluster").at("frozen").boolean());
  const Finished second = Firn({"restore", "--set=late.strategy=segment"});
  EXPECT_EQ(second.exit_code, 0) << second.out << second.err;
  EXPECT_NE(second.err.find("for running servers to report"), std::string::npos) << second.err;
}

TEST_F(FirnRestoreTest, ASecondRestoreWithoutNewFactsChangesNothing) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "step=50", "step_max=400"}).exit_code, 0);
  const std::vector<std::string> command{"restore", "--set=workers=4", "--set=order.start=900"};
  const Json first = FirnJson(command);
  Announce({});
  const Json audit = FirnJson({"audit"}, 1);
  const Json tag = FirnJson({"tags", "show", "order"});
  const Json second = FirnJson(command);
  EXPECT_TRUE(second.at("nothing_new").boolean());
  EXPECT_EQ(second.at("floor_ms"), first.at("floor_ms"));
  EXPECT_EQ(FirnJson({"audit"}, 1), audit);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}), tag);

  const std::string far = "--set=floor=" + std::to_string(NumberOf(first.at("floor_ms")) + 1);
  const std::vector<std::string> news[] = {{far},
                                           {"--set=order.high=500000000"},
                                           {"--set=order.start=900000000"},
                                           {"--set=user.strategy=segment", "--set=user.start=5"},
                                           {"--set=retire=5"},
                                           {"--tag_gap=100000000"},
                                           {"--again"}};
  int64_t floor = NumberOf(first.at("floor_ms"));
  for (const auto& more : news) {
    std::vector<std::string> again{"restore", "--set=workers=4"};
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
  const Finished restored = Firn({"restore", "--set=workers=4"});
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
  const Finished restored =
      Firn({"restore", "--set=order.start=90000", "--set=order.strategy=segment"});
  EXPECT_EQ(restored.exit_code, 0) << restored.err << restored.out;
  EXPECT_NE(restored.out.find("retired rack 0 worker 1"), std::string::npos) << restored.out;
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("start"), "90000");

  const std::string uuid = FirnJson({"audit"}).at("cluster").at("uuid").text();
  std::ofstream(place + "/node") << "firn-node half";
  EXPECT_EQ(Firn({"audit"}).exit_code, 1);
  EXPECT_EQ(Firn({"restore", "--set=workers=4"}).exit_code, 6)
      << "the cluster of these data is unknown";
  const std::vector<std::string> named{"restore", "--layout=firn", "--uuid=" + uuid};
  const Finished asked = Firn(named);
  EXPECT_EQ(asked.exit_code, 4) << asked.out;
  EXPECT_EQ(Firn({"audit"}).exit_code, 1) << "nothing was written";
  std::vector<std::string> answered = named;
  for (const char* key : {"default_strategy", "reserve", "tags"}) {
    const std::string set = std::string(" --set=") + key;
    EXPECT_NE(asked.err.find(set + "=VALUE"), std::string::npos) << asked.err;
    EXPECT_EQ(Firn(answered).exit_code, 4) << key;
    answered.push_back(set.substr(1) + "=none");
  }
  EXPECT_EQ(Firn(answered).exit_code, 4) << "the claim window is unknown";
  answered.emplace_back("--set=window=600000");
  FirnJson(answered);
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
}

TEST_F(FirnRestoreTest, UsesBoundsFromTheCommandLine) {
  const int64_t hour_ahead = SystemClock().Wall().ms() + 3'600'000;
  const int64_t year_ahead = hour_ahead + int64_t{365} * 86'400'000;
  std::vector<std::string> command{"restore", "--set=workers=4", "--layout=firn",
                                   "--set=floor=" + FormatRfc3339(WallMs(hour_ahead))};
  EXPECT_EQ(FirnJson(command).at("floor_ms"), hour_ahead + 3 * 600'000);
  command.push_back("--set=floor=" + std::to_string(year_ahead));
  const Finished refused = Firn(command);
  EXPECT_EQ(refused.exit_code, 2) << refused.err;
  EXPECT_NE(refused.err.find("more than 30 days ahead"), std::string::npos) << refused.err;
}

struct ReportedSkew {
  int64_t ms;
  bool counts;
};

// A skew of more than a day must be an operator's error. If it were used, all ids would start that
// far ahead.
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
        NumberOf(FirnJson({"restore", "--set=workers=4"}, skew.counts ? 0 : 1).at("floor_ms"));
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
  FirnJson({"restore", "--tag_gap=1000", "--set=order.high=5000", "--set=a+b.high=70"});
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("high"), "6001");
  EXPECT_EQ(FirnJson({"tags", "show", "a b"}).at(0).at("high"), "1071");
}

TEST_F(FirnRestoreTest, RaisesLedgersThatAReportOmits) {
  Init();
  for (const char* tag : {"big", "small"}) {
    EXPECT_EQ(Firn({"tags", "create", tag, "step=50", "step_max=400"}).exit_code, 0);
  }
  EXPECT_EQ(Firn({"tags", "create", "other", "strategy=snowflake"}).exit_code, 0);
  Announce({.high = {{"big", 9000}}, .high_others = 70});
  FirnJson({"restore", "--set=workers=4", "--tag_gap=1000"});
  EXPECT_EQ(FirnJson({"tags", "show", "big"}).at(0).at("high"), "10000");
  EXPECT_EQ(FirnJson({"tags", "show", "small"}).at(0).at("high"), "1070");
}

}  // namespace
}  // namespace firn
