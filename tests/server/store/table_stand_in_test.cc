// Tags whose ledger picks ranges while their database is unreachable: the marks of rows, and the
// errors that count as unreachable.

#include <fstream>
#include <optional>
#include <string>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/server/store/table_store_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StandInTableTest : public TableStoreFixture {
 protected:
  static constexpr const char* kOurs = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";

  void SetUp() override {
    TableStoreFixture::SetUp();
    tag_.when_store_is_away = StoreAway::kLedger;
    store_->Listen({.cluster = kOurs});
  }
  std::string Owner() {
    const auto rows = server_->Query(std::string("SELECT cluster FROM ") + kTable);
    return rows.ok() && rows->size() == 1 ? rows->at(0).at(0) : "no row";
  }
  void Listen(std::optional<int64_t> picked) { store_->Listen({kOurs, picked}); }
  void DropColumn() {
    ASSERT_EQ(server_->Run(std::string("ALTER TABLE ") + kTable + " DROP COLUMN cluster"),
              Status());
  }
};

TEST_P(StandInTableTest, EachRangeMarksTheRow) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  EXPECT_EQ(Owner(), kOurs);
  Edit("cluster = ''");  // as after the restore of an old backup
  ASSERT_TRUE(store_->Advance(tag_, 11, 10).ok());
  EXPECT_EQ(Owner(), kOurs);
  Edit("cluster = 'another'");
  EXPECT_EQ(store_->Advance(tag_, 21, 10).code(), Code::kDenied);
  EXPECT_EQ(Row(), "21 10");
}

// Rows of version 0.1 have no mark; its servers neither set nor remove one, and continue beside
// newer ones of their cluster.
TEST_P(StandInTableTest, MarksTheRowOfAnOlderVersionForTheFirstCluster) {
  tag_.when_store_is_away = StoreAway::kRefuse;
  ASSERT_EQ(server_->Run(std::string("INSERT INTO ") + kTable +
                         " (biz_tag, max_id, step) VALUES ('order', 41, 10)"),
            Status());
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{41, 51}));
  EXPECT_EQ(Owner(), kOurs);
  Edit("max_id = 61");
  EXPECT_EQ(store_->Advance(tag_, 51, 10).value_or({}), (Range{61, 71}));
  const auto other = Open(PlaceOf(*server_));
  other->Listen({.cluster = "another"});
  const Status refused = other->Advance(tag_, 1, 10).status();
  EXPECT_EQ(refused.code(), Code::kDenied);
  EXPECT_THAT(refused.message(), HasSubstr(std::string("belongs to the cluster ") + kOurs));
  // The remedy in the refusal.
  Edit("cluster = ''");
  EXPECT_EQ(other->Advance(tag_, 1, 10).value_or({}), (Range{71, 81}));
  EXPECT_EQ(Owner(), "another");
}

TEST_P(StandInTableTest, DoesNotMoveARowThatAnotherClusterHasMarkedMeanwhile) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  const RangeTable table = *RangeTable::Make(GetParam(), TableForm::kFirn, kTable);
  const auto connection = Connection(PlaceOf(*server_));
  ASSERT_EQ(connection->Open(), Status());
  const auto moved = connection->Execute(table.advance(RowUse::kOwned),
                                         RangeTable::AdvanceParameters({.use = RowUse::kOwned,
                                                                        .least = 1,
                                                                        .size = 5,
                                                                        .tag = "order",
                                                                        .ceiling = 999,
                                                                        .cluster = "b"}));
  ASSERT_TRUE(moved.ok()) << moved.status();
  EXPECT_EQ(moved->affected, 0u);
  EXPECT_EQ(Row(), "11 10");
}

TEST_P(StandInTableTest, RangesPickedByTheLedgerCauseNoAlarm) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  Listen(11);
  EXPECT_EQ(store_->Advance(tag_, 5001, 10).value_or({}), (Range{5001, 5011}));
  EXPECT_THAT(alarms_, IsEmpty());
  Edit("max_id = 5005");
  Listen(5011);
  EXPECT_EQ(store_->Advance(tag_, 7001, 10).value_or({}), (Range{7001, 7011}));
  EXPECT_THAT(alarms_, SizeIs(1)) << "it has lost numbers that it picked itself";
}

TEST_P(StandInTableTest, ATableWithoutTheColumnServesOnlyOtherTags) {
  DropColumn();
  const Status refused = store_->Advance(tag_, 1, 10).status();
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_THAT(refused.message(), HasSubstr("ADD cluster VARCHAR(64) NOT NULL DEFAULT ''"));
  tag_.when_store_is_away = StoreAway::kRefuse;
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  // The remedy in the refusal.
  const std::string said = refused.message().substr(refused.message().find("ALTER TABLE"));
  ASSERT_EQ(server_->Run(said), Status());
  tag_.when_store_is_away = StoreAway::kLedger;
  ASSERT_TRUE(Eventually(kPatience, [&] { return Use(*store_).has_value(); }));
  EXPECT_EQ(Owner(), kOurs);
}

TEST_P(StandInTableTest, AnUnreachableServerIsAwayAndARefusingOneIsNot) {
  const auto away = [&](const DatabasePlace& place) {
    const auto store = Open(place);
    store->Listen({.cluster = kOurs});
    EXPECT_FALSE(store->Advance(tag_, 1, 10).ok());
    const bool first = store->away();
    EXPECT_FALSE(store->Advance(tag_, 1, 10).ok());
    EXPECT_EQ(store->away(), first) << "when asked again at once";
    EXPECT_FALSE(store->Check(tag_).ok());
    EXPECT_EQ(store->away(), first);
    return first;
  };
  DatabasePlace closed = PlaceOf(*server_);
  closed.address.port = static_cast<uint16_t>(FreePort());
  EXPECT_TRUE(away(closed));
  TcpProxy proxy(server_->port());
  proxy.DropAnswers(true);
  DatabasePlace silent = PlaceOf(*server_);
  silent.address.port = static_cast<uint16_t>(proxy.port());
  silent.time_limit = Milliseconds(1000);
  EXPECT_TRUE(away(silent));

  DatabasePlace denied = PlaceOf(*server_);
  denied.credentials_file = server_->folder() / "wrong";
  std::ofstream(denied.credentials_file) << "firn:not-the-password";
  chmod(denied.credentials_file.c_str(), 0600);
  EXPECT_FALSE(away(denied));
  denied.credentials_file += "-missing";
  EXPECT_FALSE(away(denied));

  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  const auto replica = server_->StartReplica();
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_EQ((*replica)->AwaitCaughtUp(*server_), Status());
  EXPECT_FALSE(away(PlaceOf(**replica))) << "it is read-only";
  Edit("step = 0");
  EXPECT_FALSE(store_->Advance(tag_, 11, 10).ok());
  EXPECT_FALSE(store_->away()) << "an invalid row";
}

INSTANTIATE_TEST_SUITE_P(Databases, StandInTableTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
