// Tests `firn set` on a directory registry.

#include <string>
#include <vector>

#include "tests/support/json_of.h"
#include "tests/tools/firn_cluster_fixture.h"

namespace firn {
namespace {

// The root node does not change, so no claim ends: claims depend on its version.
TEST_F(FirnClusterTest, ChangesSettingsBesideTheRootNode) {
  const Finished none = Firn({"set"});
  EXPECT_EQ(none.exit_code, 4) << none.err;
  Init();
  const Json before = FirnJson({"audit", "--all"});
  const Json unset = FirnJson({"set"});
  EXPECT_EQ(unset.at("lease_share"), 50);
  EXPECT_EQ(unset.at("claim_window_ms"), 600'000);
  EXPECT_EQ(FirnJson({"set", "lease_share=70"}).at("lease_share"), 70);
  EXPECT_EQ(FirnJson({"set"}).at("lease_share"), 70);
  EXPECT_EQ(FirnJson({"audit", "--all"}), before);
  Put(Write::Set("/settings", R"({"claim_window_ms":5400000,"later":1})", Write::kAnyVersion));
  EXPECT_EQ(FirnJson({"set", "lease_share=0"}).at("claim_window_ms"), 5'400'000);
  const Finished shown = Firn({"set"});
  EXPECT_NE(shown.out.find("lease_share      0\n"), std::string::npos) << shown.out;
  for (const std::vector<std::string>& no :
       std::vector<std::vector<std::string>>{{"lease_share=101"},
                                             {"lease_share=-1"},
                                             {"lease_share="},
                                             {"lease_share=5x"},
                                             {"lease_share"},
                                             {"claim_window_ms=5"},
                                             {"lease_share=1", "x=2"}}) {
    std::vector<std::string> words{"set"};
    words.insert(words.end(), no.begin(), no.end());
    EXPECT_EQ(Firn(words).exit_code, 2) << no.front();
  }
  EXPECT_EQ(FirnJson({"set"}).at("lease_share"), 0);
  const std::string backup = folder_ / "backup.json";
  FirnJson({"backup", backup});
  registry_ += "-wiped";
  FirnJson({"restore", "--from=" + backup});
  EXPECT_EQ(FirnJson({"set"}).at("lease_share"), 0);
  const Finished kept = Firn({"restore", "--again", "--set=lease_share=70"});
  EXPECT_EQ(FirnJson({"set"}).at("lease_share"), 0);
  EXPECT_NE(kept.out.find("firn set lease_share=70"), std::string::npos) << kept.out;
}

TEST_F(FirnClusterTest, MakesUndefinedNamesCounters) {
  Init();
  EXPECT_EQ(FirnJson({"set"}).at("default_strategy"), "");
  const Json on = FirnJson({"set", "default_strategy=counter", "counter_prefixes=order:,user:"});
  EXPECT_EQ(on.at("default_strategy"), "counter");
  EXPECT_EQ(on.at("counter_start"), 1);
  EXPECT_EQ(on.at("counter_prefixes"), "order:,user:");
  EXPECT_EQ(on.at("counters_created"), 0);
  EXPECT_EQ(FirnJson({"set", "lease_share=10"}).at("default_strategy"), "counter");
  EXPECT_EQ(FirnJson({"set", "default_strategy=none"}).at("default_strategy"), "");
  for (const std::vector<std::string>& no : std::vector<std::vector<std::string>>{
           {"default_strategy=snowflake"},
           {"counter_start=5"},
           {"default_strategy=none", "counter_prefixes=a"},
           {"default_strategy=counter", "counter_prefixes"},
           {"default_strategy=counter", "counter_start=0"},
           {"default_strategy=counter", "counter_start=9223372036854775807"},
           {"default_strategy=counter", "counter_prefixes=a,,b"}}) {
    std::vector<std::string> words{"set"};
    words.insert(words.end(), no.begin(), no.end());
    EXPECT_EQ(Firn(words).exit_code, 2) << no.front();
  }
  FirnJson({"set", "default_strategy=counter"});
  const std::string backup = folder_ / "backup.json";
  FirnJson({"backup", backup});
  registry_ += "-wiped";
  FirnJson({"restore", "--from=" + backup});
  EXPECT_EQ(FirnJson({"set"}).at("default_strategy"), "");
  const Finished refused = Firn({"set", "default_strategy=counter"});
  EXPECT_NE(refused.err.find("counter_start=N"), std::string::npos) << refused.err;
  EXPECT_EQ(FirnJson({"set", "default_strategy=counter", "counter_start=900"}).at("counter_start"),
            900);
  EXPECT_NE(Firn({"set", "default_strategy=counter", "counter_start=5"}).exit_code, 0);
  EXPECT_EQ(FirnJson({"set", "default_strategy=counter", "counter_prefixes=a"}).at("counter_start"),
            900);
}

TEST_F(FirnClusterTest, ANewClusterMayBeginWithCounters) {
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=counter"});
  EXPECT_EQ(FirnJson({"set"}).at("default_strategy"), "counter");
  registry_ += "-plain";
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=snowflake"});
  const Finished refused = Firn({"set", "default_strategy=counter"});
  EXPECT_NE(refused.err.find("plain ids may be in use"), std::string::npos) << refused.err;
}

// Ids depend on these settings.
TEST_F(FirnClusterTest, ARestoreRefusesToChangePermanentSettings) {
  FirnJson({"init", "--brand-new", "--force", "--workers=4", "--default_strategy=snowflake"});
  const std::string path = folder_ / "backup.json";
  FirnJson({"backup", path});
  for (const std::string& place : {registry_, registry_ + "-wiped"}) {
    registry_ = place;
    const bool was_there = Firn({"audit"}).exit_code == 0;
    for (const char* other : {"--layout=time:31s machine:10 sequence:22", "--rack_bits=1",
                              "--set=default_strategy=none"}) {
      const Finished refused = Firn({"restore", "--from=" + path, other});
      EXPECT_EQ(refused.exit_code, 4) << other << refused.out << refused.err;
      EXPECT_NE(refused.err.find("this command: "), std::string::npos) << refused.err;
      EXPECT_EQ(refused.err.find("delete the registry's data") != std::string::npos, was_there)
          << refused.err;
    }
    EXPECT_EQ(Firn({"audit"}).exit_code == 0, was_there) << "nothing was written";
  }
}

}  // namespace
}  // namespace firn
