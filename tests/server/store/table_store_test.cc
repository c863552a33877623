#include "server/store/table/table_store.h"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/server/store/table_store_fixture.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

class TableStoreTest : public TableStoreFixture {};

// --- edited rows ---------------------------------------------------------------------------------

TEST_P(TableStoreTest, RefusesAnInvalidRowAndLeavesItUnchanged) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  const struct {
    const char* change;
    const char* row;
    const char* sentence;
  } kEdits[] = {
      {"step = 0", "11 0", "step is 0"},
      {"step = -7", "11 -7", "step is -7"},
      {"step = 10, max_id = -5", "-5 10", "max_id is -5"},
      {"max_id = 4611686018427387904", "4611686018427387904 10", "far beyond the 11"},
  };
  for (const auto& edit : kEdits) {
    Edit(edit.change);
    const auto refused = store_->Advance(tag_, 11, 10);
    EXPECT_EQ(refused.code(), Code::kCorrupt) << edit.change;
    EXPECT_THAT(refused.status().message(), HasSubstr(edit.sentence));
    EXPECT_EQ(Row(), edit.row);
  }
  Edit("max_id = 11");
  EXPECT_EQ(store_->Advance(tag_, 11, 10).value_or({}), (Range{11, 21}));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_P(TableStoreTest, JumpsOverALowerRowWithAnAlarm) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 1000).ok());
  Edit("max_id = 500");
  EXPECT_EQ(store_->Advance(tag_, 1001, 10).value_or({}), (Range{1001, 1011}));
  ASSERT_THAT(alarms_, SizeIs(1));
  EXPECT_THAT(alarms_[0], HasSubstr("gone back in time, to 500"));
  EXPECT_EQ(store_->Advance(tag_, 1011, 10).value_or({}), (Range{1011, 1021}));
  EXPECT_THAT(alarms_, SizeIs(1));
}

// Another store issued the numbers in between, before or after a restart of the server.
TEST_P(TableStoreTest, JumpsOverNumbersOfAnotherStoreWithoutAnAlarm) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  EXPECT_EQ(store_->Advance(tag_, 1001, 10).value_or({}), (Range{1001, 1011}));
  const auto restarted = Open(PlaceOf(*server_));
  EXPECT_EQ(restarted->Advance(tag_, 5001, 10).value_or({}), (Range{5001, 5011}));
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_P(TableStoreTest, ARaisedStartCausesNoAlarmAndPermitsAnyJump) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  tag_.start = int64_t{1} << 61;
  EXPECT_EQ(store_->Advance(tag_, *tag_.start, 10).value_or({}).begin, *tag_.start);
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_P(TableStoreTest, CreatesAMissingRowOnlyWithoutALedger) {
  EXPECT_EQ(store_->Check(tag_), Status());
  tag_.high = 11;
  EXPECT_EQ(store_->Check(tag_).code(), Code::kNotFound);
  EXPECT_EQ(store_->Advance(tag_, 11, 10).code(), Code::kNotFound);
  EXPECT_EQ(Row(), "none");
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
}

TEST_P(TableStoreTest, NamesTheStatementThatCreatesAMissingRow) {
  for (const TableForm form : {TableForm::kLeaf, TableForm::kTinyid}) {
    CreateTable(form);
    tag_.name = "it's";
    tag_.start = 501;
    const std::string why = store_->Check(tag_).message();
    const size_t at = why.find("INSERT INTO");
    ASSERT_NE(at, std::string::npos) << why;
    ASSERT_EQ(server_->Run(why.substr(at)), Status());
    EXPECT_EQ(store_->Check(tag_), Status());
    EXPECT_EQ(store_->Advance(tag_, 501, 10).value_or({}), (Range{501, 511}));
  }
}

TEST_P(TableStoreTest, CreatesNoRowsInTablesOfLeafAndTinyid) {
  for (const TableForm form : {TableForm::kLeaf, TableForm::kTinyid}) {
    CreateTable(form);
    EXPECT_EQ(store_->Check(tag_).code(), Code::kNotFound);
    EXPECT_EQ(store_->Advance(tag_, 1, 10).code(), Code::kNotFound);
    EXPECT_EQ(Row(), "none");
  }
}

// --- tables of Leaf and Tinyid -------------------------------------------------------------------

TEST_P(TableStoreTest, LeafFormGivesTheNumbersBelowMax) {
  CreateTable(TableForm::kLeaf);
  InsertRow(1);
  Edit("max_id = max_id + 1000");  // Leaf's server has [1, 1001)
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1001, 1011}));
  EXPECT_EQ(Row(), "1011 100");
}

TEST_P(TableStoreTest, TinyidFormGivesTheNumbersUpToMaxAndRaisesTheVersion) {
  CreateTable(TableForm::kTinyid);
  InsertRow(1);
  Edit("max_id = max_id + 1000, version = version + 1");  // its server has (0, 1000]
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1001, 1011}));
  EXPECT_EQ(Row(), "1010 100");
  const auto version = server_->Query(std::string("SELECT version FROM ") + kTable);
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->at(0).at(0), "2");
}

TEST_P(TableStoreTest, RefusesATinyidRowThatSharesItsNumbers) {
  CreateTable(TableForm::kTinyid);
  InsertRow(1);
  Edit("delta = 2, remainder = 1");
  const auto refused = store_->Advance(tag_, 1, 10);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_THAT(refused.status().message(), HasSubstr("delta is 2"));
  EXPECT_EQ(Row(), "0 100");
}

TEST_P(TableStoreTest, ATooNarrowColumnGivesNoRange) {
  const char* const change = mysql() ? " MODIFY max_id INT NOT NULL" : " ALTER max_id TYPE INT";
  ASSERT_EQ(server_->Run(std::string("ALTER TABLE ") + kTable + change), Status());
  ASSERT_TRUE(store_->Advance(tag_, 1, 2'147'483'000).ok());
  EXPECT_EQ(store_->Advance(tag_, 1, 1000).code(), Code::kExhausted);
  EXPECT_EQ(Row(), "2147483001 2147483000");
}

// --- connections --------------------------------------------------------------------------------

TEST_P(TableStoreTest, AFailedLoginReportsTheCauseWithoutThePassword) {
  DatabasePlace place = PlaceOf(*server_);
  const std::string file = server_->folder() / "wrong";
  std::ofstream(file) << "firn:not-the-password";
  chmod(file.c_str(), 0600);
  place.credentials_file = file;
  const Status denied = Open(place)->Advance(tag_, 1, 10).status();
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_THAT(denied.message(), Not(HasSubstr("not-the-password")));

  chmod(file.c_str(), 0644);
  EXPECT_EQ(Open(place)->Advance(tag_, 1, 10).code(), Code::kDenied);
  place.credentials_file += "-missing";
  EXPECT_EQ(Open(place)->Advance(tag_, 1, 10).code(), Code::kNotFound);
}

TEST_P(TableStoreTest, AMissingTableOrRowIsNotFound) {
  DatabasePlace place = PlaceOf(*server_);
  place.database = "nowhere";
  const Status no_database = Open(place)->Check(tag_);
  // MariaDB does not distinguish a database without rights for the user from a missing one.
  EXPECT_EQ(no_database.code(), mysql() ? Code::kDenied : Code::kNotFound) << no_database;
  place.database = SqlServer::kDatabase;
  ASSERT_EQ(server_->Run(std::string("DROP TABLE ") + kTable), Status());
  const Status no_table = store_->Advance(tag_, 1, 10).status();
  EXPECT_EQ(no_table.code(), Code::kNotFound);
  EXPECT_THAT(no_table.message(), HasSubstr(mysql() ? "firn_tag.sql" : "firn_tag_postgres.sql"));
  place.address.port = static_cast<uint16_t>(FreePort());
  EXPECT_EQ(Open(place)->Check(tag_).code(), Code::kUnavailable);
}

// Reading the row still works on such a server.
TEST_P(TableStoreTest, NamesAReadOnlyServerAndRetriesWithBackoff) {
  const auto replica = server_->StartReplica();
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  ASSERT_EQ((*replica)->AwaitCaughtUp(*server_), Status());
  const DatabasePlace place = PlaceOf(**replica);
  VirtualClock clock(WallMs(0));
  const auto store = Open(place, clock);
  opens_ = 0;
  for (int i = 0; i < 3; ++i) {
    const Status refused = store->Advance(tag_, 11, 10).status();
    EXPECT_EQ(refused.code(), Code::kUnavailable);
    EXPECT_THAT(refused.message(), HasSubstr(place.address.ToString() + " takes no writes ("));
  }
  EXPECT_EQ(opens_, 1);
  clock.Advance(Milliseconds(10));  // ends the first wait
  EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
  EXPECT_EQ(opens_, 2);
  clock.Advance(Milliseconds(9));  // the second wait is longer
  EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
  EXPECT_EQ(opens_, 2);

  ASSERT_EQ((*replica)->Promote(), Status());
  clock.Advance(Milliseconds(50));
  EXPECT_EQ(store->Advance(tag_, 11, 10).value_or({}), (Range{11, 21}));
}

// --- locks --------------------------------------------------------------------------------------

// A session that holds a lock on the row of one tag.
class TableLockTest : public TableStoreTest {
 protected:
  void SetUp() override {
    TableStoreTest::SetUp();
    place_ = PlaceOf(*server_);
    ASSERT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
    ASSERT_TRUE(store_->Advance(other_, 1, 10).ok());
    holder_ = Connection(place_);
    ASSERT_EQ(holder_->Open(), Status());
    ASSERT_TRUE(Say("START TRANSACTION"));
    ASSERT_TRUE(
        Say(std::string("SELECT max_id FROM ") + kTable + " WHERE biz_tag = 'order' FOR UPDATE"));
    place_.time_limit = Milliseconds(2000);
  }
  bool Say(const std::string& sql) { return holder_->Execute(sql, {}).ok(); }

  // Statements of programs that are still running at the server.
  bool AnyAtWork() {
    const auto rows = server_->Query(
        mysql() ? "SELECT id FROM information_schema.processlist WHERE user = 'firn' AND "
                  "info LIKE 'UPDATE%'"
                : "SELECT pid FROM pg_stat_activity WHERE usename = 'firn' AND state = 'active'");
    return !rows.ok() || !rows->empty();
  }
  int64_t MaxOf(const std::string& tag) {
    const auto rows = server_->Query(std::string("SELECT max_id FROM ") + kTable +
                                     " WHERE biz_tag = '" + tag + "'");
    return rows.ok() && rows->size() == 1 ? std::stoll(rows->at(0).at(0)) : -1;
  }

  DatabasePlace place_;
  TagDefinition other_{.name = "other", .strategy = "segment"};
  std::unique_ptr<SqlConnection> holder_;
};

TEST_P(TableLockTest, AnAbandonedStatementMovesNoRowLater) {
  for (int i = 0; i < 3; ++i) {
    const auto store = Open(place_);
    EXPECT_FALSE(store->Advance(tag_, 11, 10).ok());
  }
  ASSERT_TRUE(Say("COMMIT"));
  EXPECT_TRUE(Eventually(kPatience, [&] { return !AnyAtWork(); }));
  EXPECT_EQ(MaxOf("order"), 11);
  EXPECT_TRUE(Eventually(kPatience, [&] { return Use(*store_).has_value(); }));
}

TEST_P(TableLockTest, ServesOtherTagsBeforeRetryingALockedRow) {
  VirtualClock clock(WallMs(0));
  const auto store = Open(place_, clock);
  opens_ = 0;
  const Status locked = store->Advance(tag_, 11, 10).status();
  EXPECT_EQ(locked.code(), Code::kUnavailable);
  EXPECT_EQ(store->Advance(other_, 11, 10).value_or({}), (Range{11, 21}));
  EXPECT_EQ(opens_, 1) << "the connection is still usable";

  ASSERT_TRUE(Say("COMMIT"));
  EXPECT_EQ(store->Advance(tag_, 11, 10).status(), locked) << "a second request at once";
  EXPECT_TRUE(store->Advance(other_, 21, 10).ok());
  clock.Advance(LateTags::kPauseMin);
  EXPECT_EQ(store->Advance(tag_, 11, 10).value_or({}), (Range{11, 21}));
}

// --- answers ------------------------------------------------------------------------------------

TEST_P(TableStoreTest, ALostAnswerIsUnknownAndItsRangeIsNotRepeated) {
  TcpProxy proxy(server_->port());
  DatabasePlace place = PlaceOf(*server_);
  place.address.port = static_cast<uint16_t>(proxy.port());
  place.time_limit = Milliseconds(1000);
  const auto store = Open(place);
  ASSERT_EQ(store->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  proxy.DropAnswers(true);
  EXPECT_EQ(store->Advance(tag_, 11, 10).code(), Code::kUnknown);
  proxy.DropAnswers(false);
  ASSERT_TRUE(Eventually(kPatience, [&] { return store->Advance(tag_, 11, 10).ok(); }));
  EXPECT_EQ(Row().substr(0, 2), "21");  // the row was read first, which moved nothing
}

TEST_P(TableStoreTest, ASilentServerIsUnavailable) {
  TcpProxy proxy(server_->port());
  proxy.DropAnswers(true);
  DatabasePlace place = PlaceOf(*server_);
  place.address.port = static_cast<uint16_t>(proxy.port());
  place.time_limit = Milliseconds(1000);
  const auto store = Open(place);
  EXPECT_EQ(store->Advance(tag_, 1, 10).code(), Code::kUnavailable);
  EXPECT_EQ(Row(), "none");
  proxy.DropAnswers(false);
  EXPECT_TRUE(Eventually(kPatience, [&] { return Use(*store).has_value(); }));
}

TEST_P(TableStoreTest, ReplacesAConnectionThatWasCut) {
  TcpProxy proxy(server_->port());
  DatabasePlace place = PlaceOf(*server_);
  place.address.port = static_cast<uint16_t>(proxy.port());
  const auto store = Open(place);
  ASSERT_TRUE(Use(*store).has_value());
  proxy.Cut();
  EXPECT_TRUE(Eventually(kPatience, [&] { return Use(*store).has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Databases, TableStoreTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);
INSTANTIATE_TEST_SUITE_P(Databases, TableLockTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

TEST(RangeTableTest, RefusesInvalidTableNames) {
  for (const char* name : {"", "a b", "a`b", "a;b", ".a", "a.", "a.b.c", "t--"}) {
    EXPECT_EQ(RangeTable::Make(SqlDialect::kMysql, TableForm::kFirn, name).code(), Code::kInvalid)
        << name;
  }
  EXPECT_EQ(RangeTable::Make(SqlDialect::kMysql, TableForm::kLeaf, "db.t$1")->name(), "`db`.`t$1`");
  EXPECT_EQ(RangeTable::Make(SqlDialect::kPostgres, TableForm::kLeaf, "s.T")->name(),
            "\"s\".\"T\"");
}

TEST(RangeTableTest, AnImpossibleAnswerGivesNoRange) {
  const RangeTable table = *RangeTable::Make(SqlDialect::kMysql, TableForm::kFirn, "t");
  EXPECT_EQ(table.RangeAt(110, 10, 100).value_or({}), (Range{100, 110}));
  EXPECT_EQ(table.RangeAt(109, 10, 100).code(), Code::kCorrupt);
  EXPECT_EQ(table.RangeAt(0, 10, 0).code(), Code::kCorrupt);
  EXPECT_EQ(table.RangeAt(uint64_t{1} << 63, 10, 100).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace firn
