// The outputs of a server with two addresses of a database while the primary is down, while only a
// replica is reachable, and after its promotion.

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"
#include "tests/support/database/range_tables.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class StoreAddressesTest : public testing::TestWithParam<SqlDialect> {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(mysql() ? Keep(MariaDb::Start()) : Keep(Postgres::Start()));
    ASSERT_EQ(primary_->Run(CreateTableSql(TableForm::kFirn, "firn_tag", GetParam())), Status());
    auto replica = primary_->StartReplica();
    ASSERT_TRUE(replica.ok()) << replica.status();
    replica_ = *std::move(replica);
    ASSERT_EQ(replica_->AwaitCaughtUp(*primary_), Status());
    std::ofstream(folder_ / "stores.ini")
        << "[main]\nkind = " << (mysql() ? "mysql" : "postgres")
        << "\naddress = " << replica_->address() << "," << primary_->address()
        << "\ndatabase = ids\ncredentials_file = " << primary_->credentials_file() << "\n";
    server_ = std::make_unique<RunningServer>(
        folder_ / "state", std::vector<std::string>{"--registry=" + registry(),
                                                    "--stores_file=" + (folder_ / "stores.ini")});
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
    const Finished made = Firn({"tags", "create", "order", "strategy=segment", "store=main",
                                "step=1000", "step_max=1000"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }

  template <typename Started>
  void Keep(Started started) {
    ASSERT_TRUE(started.ok()) << started.status();
    primary_ = *std::move(started);
  }
  bool mysql() const { return GetParam() == SqlDialect::kMysql; }
  std::string registry() const { return "dir://" + (folder_ / "registry"); }
  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry()});
  }

  bool Takes(int count) const {
    return server_->Get(Cat("/v1/ids/order?count=", count)).status == 200;
  }
  // The tag in /v1/status.
  Json Tag() const {
    const Json status = JsonOf(server_->Admin("/v1/status").body);
    for (const Json& tag : status.at("tags")) {
      if (tag.at("tag").text() == "order") return tag;
    }
    return Json::object();
  }
  std::string Trouble() const { return Tag().at("trouble").text(); }
  int64_t Away() const { return server_->Metric("firn_segment_store_away{tag=\"order\"}"); }
  // Waits until `firn doctor` has this exit code. Returns its text.
  std::string Doctor(int exit_code) const {
    Finished doctor;
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             doctor = Firn({"doctor"});
                             return doctor.exit_code == exit_code;
                           }))
        << doctor.exit_code << doctor.out;
    return doctor.out;
  }

  TempDir folder_;
  std::unique_ptr<SqlServer> primary_, replica_;
  std::unique_ptr<RunningServer> server_;
};

TEST_P(StoreAddressesTest, EverySurfaceFollowsAPromotion) {
  // The replica is the first address, and is skipped.
  ASSERT_TRUE(Eventually(kPatience, [&] { return Takes(1); })) << server_->log();
  EXPECT_EQ(Trouble(), "");
  EXPECT_EQ(Away(), 0);
  EXPECT_THAT(Doctor(0), HasSubstr("nothing is wrong"));

  // Numbers in memory are served, but no more arrive.
  ASSERT_EQ(replica_->AwaitCaughtUp(*primary_), Status());
  primary_->Kill();
  ASSERT_TRUE(Eventually(kPatience, [&] { return !Trouble().empty() || !Takes(20); }));
  const auto names_both = AllOf(HasSubstr(replica_->address() + " takes no writes ("),
                                HasSubstr(std::to_string(primary_->port())),
                                HasSubstr("; promote it, or name the primary as its address"));
  // The first failure may be that of the call in progress.
  EXPECT_TRUE(Eventually(kPatience, [&] { return testing::Value(Trouble(), names_both); }))
      << Trouble();
  EXPECT_EQ(Away(), 1);
  EXPECT_TRUE(Takes(1)) << "numbers in memory";
  EXPECT_EQ(server_->Admin("/readyz?tag=order").status, 200);
  EXPECT_THAT(Doctor(1), AllOf(HasSubstr("gets no more numbers for tag 'order'"), names_both,
                               HasSubstr("fix: do as the reason says")));

  // Waits until no numbers are left.
  ASSERT_TRUE(Eventually(kPatience, [&] { return !Takes(20) && !Takes(1); }));
  const auto refused = server_->Get("/v1/ids/order");
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.body, AllOf(HasSubstr("STORE_DOWN"), names_both));
  EXPECT_THAT(server_->Admin("/readyz?tag=order").body, names_both);
  EXPECT_THAT(Doctor(4), AllOf(HasSubstr("refuses tag 'order'"), names_both,
                               HasSubstr("fix: do as the reason says")));

  ASSERT_EQ(replica_->Promote(), Status());
  ASSERT_TRUE(Eventually(kPatience, [&] { return Takes(1); })) << server_->log();
  EXPECT_EQ(Trouble(), "") << "the old primary is not needed";
  EXPECT_EQ(Away(), 0);
  EXPECT_THAT(Doctor(0), Not(HasSubstr("order")));
  EXPECT_TRUE(Eventually(
      kPatience, [&] { return server_->log().find("gets numbers again") != std::string::npos; }));
}

INSTANTIATE_TEST_SUITE_P(Databases, StoreAddressesTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         [](const auto& tested) {
                           return tested.param == SqlDialect::kMysql ? "mariadb" : "postgres";
                         });

}  // namespace
}  // namespace firn
