// Tests checks of `firn tags` that depend on the cluster or on this host.

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_node.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

TEST_F(FirnClusterTest, NumbersEndBelowTheIdsOfUndefinedTags) {
  const std::vector<std::string> init{"init", "--brand_new", "--workers=4",
                                      "--default_strategy=snowflake"};
  std::vector<std::string> wrong = init;
  wrong.push_back("--ids_since=yesterday");
  EXPECT_EQ(Firn(wrong).exit_code, 2);
  FirnJson(init);
  const Finished refused =
      Firn({"tags", "create", "foo", "strategy=segment", "start=9000000000000000000"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("undefined tags"), std::string::npos) << refused.err;
  EXPECT_EQ(Firn({"tags", "create", "foo", "strategy=segment"}).exit_code, 0);
  FirnJson({"restore", "--ids_since=2024-01-01"});
  const Finished none = Firn({"tags", "create", "bar", "strategy=segment", "start=1"});
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_NE(none.err.find("numbers must end below 0"), std::string::npos) << none.err;
}

TEST_F(FirnClusterTest, RefusesTimeZonesThatDoNotLoad) {
  Init();
  FirnJson({"tags", "create", "day", "strategy=dated", "zone=Europe/Berlin"});
  const std::string file = WriteFile("[day]\nstrategy = dated\nzone = Europe/Berln\n");
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"tags", "set", "day", "zone=Europe/Berln"},
        std::vector<std::string>{"tags", "create", "week", "strategy=dated", "zone=Europe/Berln"},
        std::vector<std::string>{"tags", "apply", file}}) {
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("Europe/Berln"), std::string::npos) << refused.err;
  }
  EXPECT_EQ(Firn({"tags", "set", "day", "zone=Europe/Berln", "--force"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "set", "day", "step=7"}).exit_code, 0) << "its zone stays as it was";
}

// The key of NIST's first sample.
TEST_F(FirnClusterTest, ComputesTheCheckOfAnObfuscatedTagFromItsKey) {
  Init();
  const std::string key_file = folder_ / "k1.key";
  std::ofstream(key_file) << "2b7e151628aed2a6abf7158809cf4f3c\n";
  std::filesystem::permissions(key_file, std::filesystem::perms::owner_read);
  const std::vector<std::string> create{
      "tags", "create", "order", "plugins=obfuscate", "obfuscate.width=8", "obfuscate.key=k1"};
  const Finished without = Firn(create);
  EXPECT_EQ(without.exit_code, 2);
  EXPECT_NE(without.err.find("--key_dir"), std::string::npos) << without.err;
  std::vector<std::string> with = create;
  with.push_back("--key_dir=" + folder_.path().string());
  EXPECT_EQ(Firn(with).exit_code, 0);
  EXPECT_EQ(FirnJson({"tags", "show", "order"}).at(0).at("obfuscate.check"), "7df76b");
}

TEST_F(FirnClusterTest, RefusesALedgerInPlaceOfATieredStore) {
  Init();
  Announce({.phase = ServerPhase::kReady, .stores = {{"main", false}, {"tier", true}}});
  EXPECT_EQ(Firn({"tags", "create", "a", "store=main", "when_store_is_away=ledger"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "create", "b", "store=tier"}).exit_code, 0);
  for (const char* verb : {"create", "set"}) {
    const std::string tag = verb == std::string("set") ? "b" : "c";
    const Finished refused = Firn({"tags", verb, tag, "store=tier", "when_store_is_away=ledger"});
    EXPECT_EQ(refused.exit_code, 2) << verb;
    EXPECT_NE(refused.err.find("is tiered"), std::string::npos) << refused.err;
  }
}

TEST_F(FirnClusterTest, NotesUnexpectedSettingsOfATag) {
  Init();
  const auto create = [&](const std::string& name, std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"tags", "create", name});
    return Firn(settings);
  };
  const auto hidden = [](const std::string& width) {
    return std::vector<std::string>{"strategy=snowflake", "plugins=obfuscate", "obfuscate.key=k1",
                                    "obfuscate.check=c6a13b", "obfuscate.width=" + width};
  };
  EXPECT_EQ(create("narrow", hidden("12")).exit_code, 2);
  const Finished ends = create("ends", hidden("18"));
  EXPECT_EQ(ends.exit_code, 0) << ends.err;
  EXPECT_NE(ends.out.find("NOTE: tag 'ends'"), std::string::npos) << ends.out;
  EXPECT_NE(Firn({"audit"}).out.find("NOTE: tag 'ends'"), std::string::npos);
  EXPECT_EQ(create("wide", hidden("19")).out.find("NOTE"), std::string::npos);
  const Finished dated = create("slip", {"text={date:%y%m%d}{id}"});
  EXPECT_NE(dated.out.find("strategy=dated"), std::string::npos) << dated.out;
  const Json who = FirnJson({"who", "20261125000002"}).at(0);
  EXPECT_TRUE(who.contains("note")) << who;
}

TEST_F(FirnClusterTest, HidesRetiredTagsUntilTheyAreEnabled) {
  Init();
  EXPECT_EQ(FirnJson({"tags", "retire", "default"}).at("done"), true);
  const Finished list = Firn({"tags", "list"});
  EXPECT_EQ(list.out.find("default"), std::string::npos) << list.out;
  EXPECT_NE(list.out.find("1 retired"), std::string::npos) << list.out;
  EXPECT_NE(Firn({"tags", "list", "--all"}).out.find("retired"), std::string::npos);
  EXPECT_EQ(FirnJson({"tags", "show", "default"}).at(0).at("disabled"), "true");
  EXPECT_EQ(Firn({"tags", "set", "default", "disabled=false"}).exit_code, 0);
  EXPECT_NE(Firn({"tags", "list"}).out.find("default"), std::string::npos);
}

TEST_F(FirnClusterTest, AuditSaysSinceWhenMachineIdsWereNotUsed) {
  Init();
  const std::string since = "machine ids were never used since ";
  const std::string before = Firn({"audit"}).out;
  EXPECT_EQ(before.find(since), std::string::npos) << before;
  FirnJson({"restore"});
  const std::string restored = Firn({"audit"}).out;
  EXPECT_NE(restored.find(since), std::string::npos) << restored;
  EXPECT_NE(restored.find(", when their records begin"), std::string::npos) << restored;
}

TEST_F(FirnClusterTest, AuditShowsTheAddressOfAnOwner) {
  Init();
  const auto show = [&](const std::string& owner) {
    Break(SlotPath({0, 0}), FormatSlotRecord({.nonce = Nonce(1, 1),
                                              .bound = SystemClock().Wall() - Milliseconds(1'000),
                                              .owner = owner}));
    return Firn({"audit"}).out;
  };
  EXPECT_NE(show("firn.7609.2130706433.9e107d9d372bb682").find("firn 127.0.0.1:7609"),
            std::string::npos);
  EXPECT_NE(
      show("my.app.80.00000000000000000000000000000001.9e107d9d372bb682").find("my.app [::1]:80"),
      std::string::npos);
  EXPECT_NE(show("else 10.0.0.5").find("else 10.0.0.5"), std::string::npos);
}

TEST_F(FirnClusterTest, RefusesTagsThatOneRunningServerCannotServe) {
  Init();
  Announce({.phase = ServerPhase::kReady,
            .stores = {{"registry", true}, {"cache", false}, {"leaf", false}},
            .stand_ins = {"cache"},
            .plugins = {"limit", "rate"},
            .strategies = {"dated", "segment", "snowflake"}});
  const auto refuses = [this](const std::vector<std::string>& call, const std::string& why) {
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 2) << refused.out;
    EXPECT_NE(refused.err.find("would refuse it"), std::string::npos) << refused.err;
    EXPECT_NE(refused.err.find(why), std::string::npos) << refused.err;
  };
  refuses({"tags", "create", "order", "plugins=history"}, "plugin 'history' is not available");
  refuses({"tags", "create", "order", "store=leaf", "when_store_is_away=ledger"},
          "store 'leaf' does not permit when_store_is_away = ledger");
  EXPECT_EQ(Firn({"tags", "create", "order", "plugins=limit", "limit.per_second=9"}).exit_code, 0);
  refuses({"tags", "set", "order", "plugins=limit,history"}, "plugin 'history' is not available");
  EXPECT_EQ(Firn({"tags", "set", "order", "plugins=limit,history", "--force"}).exit_code, 0);
  EXPECT_EQ(Firn({"tags", "set", "order", "step=7"}).exit_code, 0) << "its plugins stay";
}

TEST_F(FirnClusterTest, RefusesWhatARunningServerOfVersion01DoesNotSupport) {
  Init();
  Announce({.phase = ServerPhase::kReady, .stores = {{"registry", true}}});
  const std::vector<std::string> create{"tags", "create", "order"};
  for (const std::vector<std::string>& settings :
       {std::vector<std::string>{"buffer=owner"},
        {"strategy=dated", "text={date:%y%m%d}{count}"},
        {"strategy=snowflake", "text={id:uuid7}"},
        {"strategy=snowflake", "plugins=obfuscate", "obfuscate.key=k1", "obfuscate.check=c6a13b",
         "obfuscate.width=19"}}) {
    std::vector<std::string> call = create;
    call.insert(call.end(), settings.begin(), settings.end());
    const Finished refused = Firn(call);
    EXPECT_EQ(refused.exit_code, 2) << settings[0] << refused.out;
    EXPECT_NE(refused.err.find("server h:1 would refuse it: its version does not support"),
              std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("upgrade it first"), std::string::npos) << refused.err;
  }
  const Finished counters = Firn({"set", "default_strategy=counter"});
  EXPECT_EQ(counters.exit_code, 2);
  EXPECT_NE(counters.err.find("version 0.1 would refuse"), std::string::npos) << counters.err;
  EXPECT_EQ(FirnJson({"set"}).at("default_strategy"), "");
  FirnJson({"tags", "create", "order", "strategy=dated", "text={date:%y}-{period}-{count}"});
  FirnJson({"tags", "create", "ticket"});
  EXPECT_EQ(Firn({"tags", "set", "ticket", "buffer=owner"}).exit_code, 2);
  FirnJson({"tags", "set", "ticket", "buffer=owner", "--force"});
  FirnJson({"tags", "set", "ticket", "step=7"});
}

TEST_F(FirnClusterTest, GivesAUsedTagAnOwnerOnceEachListedServerReports) {
  Init();
  FirnJson({"tags", "create", "order", "strategy=segment", "buffer=none"});
  const std::string node = R"({"strategy":"segment","buffer":"none","high":101})";
  Break(TagPath("order"), node);
  Announce({.phase = ServerPhase::kReady,
            .stores = {{"registry", true}},
            .strategies = {"dated", "segment", "snowflake"}});
  const std::string silent =
      std::string(kProvidersPath) + "/" + ProviderNodeName({.address = "h:2"});
  Put(Write::Create(silent, "?", Lifetime::kPersistent));
  const std::vector<std::string> edit{"tags", "set", "order", "buffer=owner"};
  const Finished refused = Firn(edit);
  EXPECT_EQ(refused.exit_code, 2) << refused.out;
  EXPECT_NE(refused.err.find("server h:2 does not report whether it supports buffer = owner; try "
                             "again, upgrade or stop that server, or skip"),
            std::string::npos)
      << refused.err;
  EXPECT_EQ(Firn({"tags", "set", "order", "step=7"}).exit_code, 0) << "no other edit needs it";
  Put(Write::Erase(silent, Write::kAnyVersion));
  FirnJson(edit);
  Break(TagPath("order"), node);
  Put(Write::Create(silent, "?", Lifetime::kPersistent));
  std::vector<std::string> forced = edit;
  forced.push_back("--force");
  FirnJson(forced);
  EXPECT_EQ(Firn({"tags", "set", "order", "buffer=none"}).exit_code, 2);
}

}  // namespace
}  // namespace firn
