// Session settings that must not depend on a database's defaults.

#include <gmock/gmock.h>

#include "tests/server/store/table_store_fixture.h"

namespace firn {
namespace {

class MysqlSessionTest : public TableStoreFixture {};
class PostgresSessionTest : public TableStoreFixture {
 protected:
  void TearDown() override {
    EXPECT_EQ(server_->Run("ALTER DATABASE ids RESET ALL"), Status());
    EXPECT_EQ(server_->Run("ALTER ROLE firn RESET ALL"), Status());
    TableStoreFixture::TearDown();
  }
  std::string Setting(const std::string& name) {
    const auto connection = Connection(PlaceOf(*server_));
    EXPECT_EQ(connection->Open(), Status());
    const auto answer = connection->Execute("SHOW " + name, {});
    return answer.ok() ? answer->rows.at(0).at(0) : answer.status().ToString();
  }
};

TEST_P(MysqlSessionTest, WritesAreDurableWithAnyServerDefaults) {
  ASSERT_EQ(server_->Run("SET GLOBAL autocommit = 0"), Status());
  const auto store = Open(PlaceOf(*server_));
  EXPECT_EQ(store->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  EXPECT_EQ(Row(), "11 10");
  ASSERT_EQ(server_->Run("SET GLOBAL autocommit = 1"), Status());
}

TEST_P(PostgresSessionTest, WritesAreDurableAndSerialWithAnyServerDefaults) {
  for (const char* setting : {"synchronous_commit = off", "statement_timeout = 0",
                              "lock_timeout = 0", "default_transaction_isolation = serializable"}) {
    ASSERT_EQ(server_->Run(std::string("ALTER DATABASE ids SET ") + setting), Status());
  }
  EXPECT_EQ(Setting("synchronous_commit"), "on");
  EXPECT_EQ(Setting("statement_timeout"), "30s");
  EXPECT_EQ(Setting("lock_timeout"), "15s");
  EXPECT_EQ(Setting("transaction_isolation"), "read committed");
  ASSERT_EQ(server_->Run("ALTER DATABASE ids SET synchronous_commit = remote_apply"), Status());
  EXPECT_EQ(Setting("synchronous_commit"), "remote_apply") << "a stronger setting is kept";
}

TEST_P(PostgresSessionTest, NamesAReplicaWhoseDefaultIsSerializable) {
  ASSERT_EQ(server_->Run("ALTER ROLE firn SET default_transaction_isolation = serializable"),
            Status());
  auto made = server_->StartReplica();
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_EQ((*made)->AwaitCaughtUp(*server_), Status());
  const Status refused = Open(PlaceOf(**made))->Advance(tag_, 1, 10).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), testing::HasSubstr("it is a replica"));
}

// The row's new number is sent before the transaction ends.
TEST_P(PostgresSessionTest, GivesNoRangeIfTheCommitFails) {
  ASSERT_EQ(server_->Run("CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
                         "$$BEGIN RAISE EXCEPTION 'at the very end'; END$$"),
            Status());
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  ASSERT_EQ(server_->Run(std::string("CREATE CONSTRAINT TRIGGER last AFTER UPDATE ON ") + kTable +
                         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()"),
            Status());
  const auto refused = store_->Advance(tag_, 11, 10);
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), testing::HasSubstr("at the very end"));
  EXPECT_EQ(Row(), "11 10");
}

TEST_P(PostgresSessionTest, NamesAServerThatBecameReadOnly) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  ASSERT_EQ(server_->Run("ALTER ROLE firn SET default_transaction_read_only = on"), Status());
  const Status refused = Open(PlaceOf(*server_))->Advance(tag_, 11, 10).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), testing::HasSubstr("takes no writes"));
}

TEST_P(PostgresSessionTest, NamesThePrivilegesThatTheUserLacks) {
  ASSERT_EQ(server_->Run(std::string("REVOKE UPDATE ON ") + kTable + " FROM firn"), Status());
  const Status denied = store_->Advance(tag_, 1, 10).status();
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_THAT(denied.message(), testing::HasSubstr("grant the user UPDATE on"));
}

INSTANTIATE_TEST_SUITE_P(Databases, MysqlSessionTest, testing::Values(SqlDialect::kMysql),
                         NameOfDatabase);
INSTANTIATE_TEST_SUITE_P(Databases, PostgresSessionTest, testing::Values(SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
