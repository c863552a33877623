// Tests checks of `firn tags` that depend on the cluster or on this host.

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

}  // namespace
}  // namespace firn
