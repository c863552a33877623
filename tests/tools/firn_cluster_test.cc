#include <filesystem>

#include "common/tag/tag_fields.h"
#include "tests/support/json_of.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

TEST_F(FirnClusterTest, ANewClusterHasNoFaults) {
  Init();
  const Json audit = FirnJson({"audit", "--all"});
  EXPECT_EQ(audit.at("machines").size(), 16u);  // four workers in each of four racks
  EXPECT_EQ(audit.at("faults").size(), 0u);
  EXPECT_EQ(audit.at("cluster").at("layout"), "firn");
}

TEST_F(FirnClusterTest, InitRefusesAnExistingCluster) {
  Init();
  EXPECT_EQ(Firn({"init", "--brand-new", "--workers=4"}).exit_code, 4);
}

TEST_F(FirnClusterTest, ANewClusterNeedsNoUpgrade) {
  Init();
  const Json report = FirnJson({"upgrade"});
  EXPECT_EQ(report.at("from"), report.at("to"));
  EXPECT_EQ(Firn({"upgrade", "now"}).exit_code, 2);
}

TEST_F(FirnClusterTest, ReservesAndReleasesMachineIds) {
  Init();
  const Json reserved =
      FirnJson({"machines", "reserve", "7", "0-2", "1", "--reserved_for=leaf at 10.0.0.5"});
  EXPECT_EQ(reserved.at("machines"), Json::array({0, 1, 2, 7}));
  const Json list = FirnJson({"machines", "list"});
  ASSERT_EQ(list.size(), 4u) << list;
  EXPECT_EQ(list.at(0).at("use"), "reserved");
  EXPECT_EQ(list.at(0).at("owner"), "reserved: leaf at 10.0.0.5");
  EXPECT_NE(Firn({"audit"}).out.find("reserved: leaf at 10.0.0.5"), std::string::npos);
  FirnJson({"machines", "release", "1"});
  EXPECT_EQ(Firn({"machines", "release", "1"}).exit_code, 4) << "it is not reserved any more";
  for (const char* no : {"1024", "2-1", "x", "1-"}) {
    EXPECT_EQ(Firn({"machines", "reserve", no}).exit_code, 2) << no;
  }
  EXPECT_EQ(Firn({"machines", "reserve"}).exit_code, 2);
}

TEST_F(FirnClusterTest, InitRequiresBrandNew) {
  const Finished asked = Firn({"init", "--workers=4"});
  EXPECT_EQ(asked.exit_code, 2);
  for (const char* choice : {"--brand-new", "firn restore", "30 minutes ahead"}) {
    EXPECT_NE(asked.err.find(choice), std::string::npos) << asked.err;
  }
  EXPECT_EQ(Firn({"audit"}).exit_code, 1) << "init created something";
}

TEST_F(FirnClusterTest, ARestoreWithALayoutAloneCreatesAClusterWhoseIdsStartAhead) {
  const Json made = FirnJson({"restore", "--layout=firn", "--set=workers=4"});
  EXPECT_EQ(made.at("root_made"), true);
  const Json audit = FirnJson({"audit"});
  EXPECT_EQ(audit.at("cluster").at("floor_ms"), made.at("floor_ms"));
  EXPECT_GT(NumberOf(made.at("floor_ms")), SystemClock().Wall().ms());
}

TEST_F(FirnClusterTest, RestoreRecreatesALostClusterUnderItsUuid) {
  const std::string uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  EXPECT_EQ(Firn({"restore", "--set=workers=4", "--layout=firn", "--uuid=nonsense"}).exit_code, 2);
  EXPECT_EQ(Firn({"restore", "--set=workers=4", "--uuid=" + uuid}).exit_code, 2)
      << "the layout is not given";
  EXPECT_EQ(FirnJson({"restore", "--set=workers=4", "--layout=firn", "--uuid=" + uuid,
                      "--set=default_strategy=none", "--set=reserve=none", "--set=tags=none",
                      "--set=window=600000"})
                .at("uuid"),
            uuid);
  EXPECT_EQ(FirnJson({"restore", "--set=workers=4", "--uuid=" + uuid}).at("uuid"), uuid);
  const std::string other = "7f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  EXPECT_EQ(Firn({"restore", "--set=workers=4", "--uuid=" + other}).exit_code, 4);
}

TEST_F(FirnClusterTest, AuditReportsAnEmptyRegistry) {
  ASSERT_TRUE(OpenCoordinator(registry_, {}, SystemClock(), SystemEntropy()).ok());  // creates it
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find("WRONG"), std::string::npos) << audit.out;
}

TEST_F(FirnClusterTest, RestoreRepairsADamagedRecord) {
  Init();
  Break("/machines/0/1", "{\"nonce\":");
  const Finished audit = Firn({"audit"});
  EXPECT_EQ(audit.exit_code, 1);
  EXPECT_NE(audit.out.find("WRONG"), std::string::npos) << audit.out;
  FirnJson({"restore", "--set=workers=4"});
  EXPECT_EQ(Firn({"audit"}).exit_code, 0) << Firn({"audit"}).out;
}

TEST_F(FirnClusterTest, AppliesAndShowsTags) {
  Init();
  const std::string file = WriteFile(
      "[order]\nstrategy = segment\nstart = 100\nstep = 50\n[\"a/b c\"]\nstrategy = snowflake\n");
  EXPECT_EQ(FirnJson({"tags", "apply", file, "--dry_run"}).at("done"), false);
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 1u);
  EXPECT_EQ(FirnJson({"tags", "apply", file}).at("done"), true);
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 3u);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("step"), "50");
  EXPECT_EQ(FirnJson({"tags", "apply", file}).at("changes").size(), 0u);

  const Finished shown = Firn({"tags", "show", "order", "a/b c"});
  EXPECT_EQ(Firn({"tags", "apply", WriteFile(shown.out)}).exit_code, 0) << shown.out;
}

TEST_F(FirnClusterTest, VerbsThatReadCreateNoRegistry) {
  const std::string path = registry_.substr(std::string("dir://").size());
  for (const std::vector<std::string>& verb : std::vector<std::vector<std::string>>{
           {"tags", "list"}, {"audit"}, {"machines", "list"}, {"tags", "create", "t"}}) {
    const Finished refused = Firn(verb);
    EXPECT_EQ(refused.exit_code, 4) << verb.front();
    EXPECT_NE(refused.err.find("there is no registry at " + registry_), std::string::npos)
        << refused.err;
    EXPECT_FALSE(std::filesystem::exists(path)) << verb.front();
  }
}

TEST_F(FirnClusterTest, TheFlagsFileNamesTheRegistry) {
  Init();
  const std::string file = folder_ / "firn.flags";
  std::ofstream(file) << "# the host's cluster\n--registry=" << registry_ << "\n";
  const auto firn = [&file](std::vector<std::string> words) {
    words.insert(words.begin(), {"/usr/bin/env", "FIRN_FLAGS_FILE=" + file, BuiltProgram("firn")});
    return RunToEnd(words);
  };
  EXPECT_NE(firn({"tags", "list"}).out.find("default"), std::string::npos);
  const Finished other = firn({"tags", "list", "--registry=dir:///nowhere/at/all"});
  EXPECT_NE(other.err.find("dir:///nowhere/at/all (named by --registry)"), std::string::npos)
      << other.err;
  std::ofstream(file) << "\n--registy=x\n";
  const Finished faulty = firn({"tags", "list"});
  EXPECT_EQ(faulty.exit_code, 2);
  EXPECT_NE(faulty.err.find("firn.flags:2: there is no flag --registy"), std::string::npos)
      << faulty.err;
}

TEST_F(FirnClusterTest, RefusesToLowerAStart) {
  Init();
  const std::string file = WriteFile("[order]\nstrategy = segment\nstep = 50\n");
  FirnJson({"tags", "apply", file});
  FirnJson({"tags", "set", "order", "start=5001"});
  const Finished refused = Firn({"tags", "set", "order", "start=100"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("cannot be lowered from 5001"), std::string::npos) << refused.err;
  EXPECT_EQ(FirnJson({"tags", "apply", file}).at("changes").size(), 0u);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("start"), "5001");
}

TEST_F(FirnClusterTest, InitCreatesTheDefaultTagAsAnOrdinaryTag) {
  Init();
  EXPECT_EQ(Firn({"tags", "disable", "default"}).exit_code, 0);
  const Finished fixed = Firn({"tags", "set", "default", "text={id:base32}"});
  EXPECT_EQ(fixed.exit_code, 2);
  EXPECT_NE(fixed.err.find("create another tag"), std::string::npos) << fixed.err;
}

TEST_F(FirnClusterTest, RefusesObfuscationIfUndefinedTagsAreServed) {
  EXPECT_EQ(Firn({"init", "--brand_new", "--workers=4", "--default_strategy=segment"}).exit_code,
            2);
  FirnJson({"init", "--brand_new", "--force", "--workers=4", "--default_strategy=snowflake"});
  for (const char* strategy : {"strategy=snowflake", "strategy=segment"}) {
    const Finished refused =
        Firn({"tags", "create", "order", strategy, "plugins=obfuscate", "obfuscate.width=9",
              "obfuscate.key=k1", "obfuscate.check=c6a13b"});
    EXPECT_EQ(refused.exit_code, 2);
    EXPECT_NE(refused.err.find("plain ids may have been"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(Firn({"tags", "create", "order"}).exit_code, 0);
}

TEST_F(FirnClusterTest, RefusesTagsThatNoServerCanServe) {
  Init();
  const Finished early = Firn({"tags", "create", "early", "store=later"});
  EXPECT_EQ(early.exit_code, 0) << "no server runs yet";
  EXPECT_NE(early.err.find("NOTE: no server has reported"), std::string::npos) << early.err;
  Announce({.phase = ServerPhase::kReady,
            .stores = {{"registry", true}, {"cache", false}, {"tier", true}}});
  EXPECT_EQ(Firn({"tags", "create", "order", "store=cache"}).err, "");
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"tags", "set", "order", "buffer=none"},
        std::vector<std::string>{"tags", "create", "user", "store=cache", "buffer=none"},
        std::vector<std::string>{
            "tags", "apply",
            WriteFile("[order]\nstrategy = segment\nstore = cache\nbuffer = none\n")}}) {
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("does not permit buffer = none"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(Firn({"tags", "create", "user", "store=cash"}).exit_code, 2)
      << "no server has that store";
  EXPECT_EQ(Firn({"tags", "create", "user", "store=cash", "--force"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "set", "early", "step=7"}).exit_code, 0) << "its store stays as it was";
  EXPECT_EQ(Firn({"tags", "set", "order", "store=tier", "buffer=none"}).exit_code, 0);
}

TEST_F(FirnClusterTest, ApplyChecksTheWholeFileBeforeTheFirstWrite) {
  Init();
  const Finished refused = Firn({"tags", "apply",
                                 WriteFile("[good]\nstrategy = segment\n[bad]\nstep = x\n"
                                           "colour = blue\n")});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("line 4"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("line 5"), std::string::npos) << refused.err;
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 1u);
}

TEST_F(FirnClusterTest, ApplyReportsHowFarAFailedFileGot) {
  // The cluster may have lost data, so new tags require an explicit start.
  FirnJson({"restore", "--layout=firn", "--set=workers=4"});
  const Finished stopped = Firn({"tags", "apply",
                                 WriteFile("[first]\nstrategy = segment\nstart = 1\n"
                                           "[second]\nstrategy = segment\n"
                                           "[third]\nstrategy = segment\nstart = 1\n")});
  EXPECT_EQ(stopped.exit_code, 2);
  for (const char* said : {"+ third: new", "done: first\n", "not done: second", "explicit start"}) {
    EXPECT_NE(stopped.err.find(said), std::string::npos) << said << " is not in " << stopped.err;
  }
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 2u);
}

TEST_F(FirnClusterTest, CreatesChangesAndDisablesATag) {
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

TEST_F(FirnClusterTest, DeletesAndRecreatesAnUnusedTag) {
  Init();
  EXPECT_EQ(Firn({"tags", "create", "order", "text=A{id}"}).exit_code, 0);
  EXPECT_EQ(FirnJson({"tags", "delete", "order"}).at("done"), true);
  EXPECT_EQ(Firn({"tags", "show", "order"}).exit_code, 4);
  EXPECT_EQ(Firn({"tags", "delete", "order"}).exit_code, 4);
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 1u);
  Announce({.phase = ServerPhase::kReady, .high = {{"order", 0}}});
  EXPECT_EQ(Firn({"audit"}).out.find("order"), std::string::npos) << "a deleted tag is not lost";
  EXPECT_EQ(Firn({"tags", "create", "order", "text=B{id}"}).exit_code, 0);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("text"), "B{id}");

  const Finished used = Firn({"tags", "delete", "default"});
  EXPECT_EQ(used.exit_code, 4);
  EXPECT_NE(used.err.find("retire it"), std::string::npos) << used.err;
}

TEST_F(FirnClusterTest, HelpListsEveryTagKey) {
  for (const char* verb : {"create", "set"}) {
    const std::string help = Firn({"tags", verb, "--help"}).out;
    for (const TagField& field : TagFields()) {
      EXPECT_NE(help.find("\n  " + std::string(field.key) + " "), std::string::npos) << field.key;
    }
    EXPECT_NE(help.find("fixed once an id may have been issued"), std::string::npos) << help;
  }
}

TEST_F(FirnClusterTest, RequiresForceForUnknownPluginsAndStrategies) {
  Init();
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"tags", "create", "order", "plugins=limti"},
        std::vector<std::string>{"tags", "create", "order", "strategy=segmnet"},
        std::vector<std::string>{"tags", "set", "default", "plugins=limti"},
        std::vector<std::string>{
            "tags", "apply", WriteFile("[good]\nstrategy = segment\n[bad]\nstrategy = segmnet\n")},
        std::vector<std::string>{"tags", "apply", folder_ / "tags.ini", "--dry_run"}}) {
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(FirnJson({"tags", "list"}).at("tags").size(), 1u);
  EXPECT_EQ(Firn({"tags", "create", "order", "plugins=mine", "mine.key=7", "--force"}).exit_code,
            0);
  const std::string as_it_is = WriteFile(Firn({"tags", "show", "order"}).out);
  EXPECT_EQ(Firn({"tags", "apply", as_it_is}).exit_code, 0) << "the file names nothing new";
  EXPECT_EQ(Firn({"tags", "set", "order", "step=7"}).exit_code, 0)
      << "its plugins stay as they were";
}

// The key and ciphertext of NIST's first sample.
TEST_F(FirnClusterTest, RevealsObfuscatedIdsWithTheKey) {
  Init();
  const std::string key_file = folder_ / "k1.key";
  std::ofstream(key_file) << "2b7e151628aed2a6abf7158809cf4f3c\n";
  std::filesystem::permissions(key_file, std::filesystem::perms::owner_read);
  const std::string keys = "--key_dir=" + folder_.path().string();
  EXPECT_EQ(Firn({"tags", "create", "order", "plugins=obfuscate", "obfuscate.width=8",
                  "obfuscate.key=k1", "obfuscate.check=7df76b", "text=INV-{id:08}"})
                .exit_code,
            0);
  const Json revealed = FirnJson({"reveal", "order", "12345678", keys}).at(0);
  EXPECT_EQ(revealed.at("shown"), "12345678");
  const std::string& plain = revealed.at("id").text();
  EXPECT_NE(plain, "12345678");
  EXPECT_EQ(FirnJson({"reveal", "order", "INV-12345678", keys}).at(0).at("id"), plain);

  const Json explained = FirnJson({"explain", "--tag=order", "INV-12345678", keys}).at(0);
  EXPECT_EQ(explained.at("id"), plain);
  EXPECT_FALSE(explained.contains("time")) << "a segment tag's number contains no time";
  EXPECT_EQ(Firn({"reveal", "order", "12345678"}).exit_code, 4) << "without the key";
  EXPECT_EQ(Firn({"reveal", "default", "12345678", keys}).exit_code, 2)
      << "the tag is not obfuscated";
  std::filesystem::remove(key_file);
  std::ofstream(key_file) << "ffffffffffffffffffffffffffffffff\n";
  std::filesystem::permissions(key_file, std::filesystem::perms::owner_read);
  const Finished other = Firn({"reveal", "order", "12345678", keys});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_NE(other.err.find("7df76b"), std::string::npos) << other.err;
}

TEST_F(FirnClusterTest, ExplainUsesTheClustersLayout) {
  EXPECT_EQ(Firn({"init", "--brand-new", "--force", "--layout=twitter"}).exit_code, 0);
  const Json read = FirnJson({"explain", "1169786042799259000"}).at(0);
  EXPECT_EQ(read.at("time_ms"), 1567733700834);
  EXPECT_FALSE(read.contains("note"));
}

TEST_F(FirnClusterTest, ExplainReadsATextOfFieldsByTheClustersLayout) {
  EXPECT_EQ(Firn({"init", "--brand-new", "--force", "--layout=twitter"}).exit_code, 0);
  FirnJson({"tags", "create", "stamp", "strategy=snowflake", "text=S{id:fields}"});
  const std::string text = "S20190906013500834-0039-3448";
  EXPECT_EQ(FirnJson({"explain", text, "--tag=stamp"}).at(0).at("id"), "1169786042799259000");

  const Finished refused = Firn({"tags", "create", "order", "text={id:fields}"});
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_NE(refused.err.find("snowflake tags only"), std::string::npos) << refused.err;
}

TEST_F(FirnClusterTest, ExplainShowsThePeriodAndCountOfADatedNumber) {
  Init();
  FirnJson({"tags", "create", "day", "strategy=dated", "text=D{period}-{count}"});
  FirnJson({"tags", "create", "month", "strategy=dated", "period=month", "digits=4"});
  const Json day = FirnJson({"explain", "--tag=day", "D20261122-000042"}).at(0);
  EXPECT_EQ(day.at("id"), "20261122000042");
  EXPECT_EQ(day.at("period"), 20261122);
  EXPECT_EQ(day.at("count"), 42);
  EXPECT_FALSE(day.contains("time"));
  EXPECT_NE(day.at("note").text().find("has not been issued"), std::string::npos);
  const Json month = FirnJson({"explain", "--tag=month", "2026110007"}).at(0);
  EXPECT_EQ(month.at("period"), 202611);
  EXPECT_EQ(month.at("count"), 7);
  for (const char* none : {"20261322000001", "20261122000000", "12"}) {
    EXPECT_EQ(Firn({"explain", "--tag=day", none}).exit_code, 2) << none;
  }
}

// A small number, interpreted as a snowflake id, has a date, which is wrong.
TEST_F(FirnClusterTest, ExplainNotesThatASmallNumberIsProbablyNotASnowflakeId) {
  Init();
  for (const char* number : {"1", "4711", "999999999", "20261122000042"}) {
    const Json read = FirnJson({"explain", number}).at(0);
    ASSERT_TRUE(read.contains("note")) << number;
    EXPECT_NE(read.at("note").text().find("--tag"), std::string::npos) << number;
  }
}

TEST_F(FirnClusterTest, RequiresForceForSettingsOfUnlistedServers) {
  Init();
  Announce({.phase = ServerPhase::kReady});  // as h:1
  EXPECT_EQ(Firn({"servers", "offline", "h:1"}).exit_code, 0);
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"servers", "offline", "h:2"},
        std::vector<std::string>{"servers", "weight", "h:2", "7"}}) {
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 4) << refused.out;
    EXPECT_NE(refused.err.find("--force"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(Firn({"servers", "offline", "h:2", "--force"}).exit_code, 0);
  EXPECT_EQ(Firn({"servers", "online", "h:2"}).exit_code, 0) << "a setting is stored for it";
}

TEST_F(FirnClusterTest, AnInvalidRegistryIsInvalidUsage) {
  for (const char* registry : {"", "nonsense", "ftp://x", "zk://", "zk://h", "dir://relative"}) {
    const Finished refused =
        RunFirn({"audit", "--timeout_ms=300", std::string("--registry=") + registry});
    EXPECT_EQ(refused.exit_code, 2) << registry << ": " << refused.err;
  }
}

TEST_F(FirnClusterTest, AnUnreachableRegistryExitsWithTryLater) {
  const Finished later =
      RunFirn({"audit", "--timeout_ms=300",
               "--registry=zk://127.0.0.1:" + std::to_string(FreePort()) + "/firn/test"});
  EXPECT_EQ(later.exit_code, 3) << later.err;
}

}  // namespace
}  // namespace firn
