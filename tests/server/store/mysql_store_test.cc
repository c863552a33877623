#include "server/store/mysql/mysql_store.h"

#include <fstream>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/server/store/mysql_store_fixture.h"
#include "tests/support/tcp_proxy.h"

namespace firn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

using MysqlStoreTest = MysqlStoreFixture;

// --- rows that somebody has edited --------------------------------------------------------------

TEST_F(MysqlStoreTest, ARowOfNonsenseIsRefusedAndLeftAsItIs) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  const struct {
    const char* change;
    const char* row;
    const char* sentence;
  } kEdits[] = {
      {"step = 0", "11 0", "step is 0"},
      {"step = -7", "11 -7", "step is -7"},
      {"step = 10, max_id = -5", "-5 10", "max_id is -5"},
      {"max_id = 1 << 62", "4611686018427387904 10", "far beyond the 11"},
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

TEST_F(MysqlStoreTest, ALowerRowIsJumpedOverWithAnAlarm) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 1000).ok());
  Edit("max_id = 500");
  EXPECT_EQ(store_->Advance(tag_, 1001, 10).value_or({}), (Range{1001, 1011}));
  ASSERT_THAT(alarms_, SizeIs(1));
  EXPECT_THAT(alarms_[0], HasSubstr("gone back in time, to 500"));
  EXPECT_EQ(store_->Advance(tag_, 1011, 10).value_or({}), (Range{1011, 1021}));
  EXPECT_THAT(alarms_, SizeIs(1));
}

TEST_F(MysqlStoreTest, ARaisedStartIsNoAlarmAndPermitsAnyJump) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  tag_.start = int64_t{1} << 61;
  EXPECT_EQ(store_->Advance(tag_, *tag_.start, 10).value_or({}).begin, *tag_.start);
  EXPECT_THAT(alarms_, IsEmpty());
}

TEST_F(MysqlStoreTest, ARowThatIsGoneIsMadeOnlyWithoutALedger) {
  EXPECT_EQ(store_->Check(tag_), Status());
  tag_.high = 11;
  EXPECT_EQ(store_->Check(tag_).code(), Code::kNotFound);
  EXPECT_EQ(store_->Advance(tag_, 11, 10).code(), Code::kNotFound);
  EXPECT_EQ(Row(), "none");
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
}

TEST_F(MysqlStoreTest, TablesOfOthersGetNoRowsFromUs) {
  for (const MysqlForm form : {MysqlForm::kLeaf, MysqlForm::kTinyid}) {
    CreateTable(form);
    EXPECT_EQ(store_->Check(tag_).code(), Code::kNotFound);
    EXPECT_EQ(store_->Advance(tag_, 1, 10).code(), Code::kNotFound);
    EXPECT_EQ(Row(), "none");
  }
}

// --- tables of others ---------------------------------------------------------------------------

TEST_F(MysqlStoreTest, LeafGivesTheNumbersBelowMax) {
  CreateTable(MysqlForm::kLeaf);
  InsertRow(1);
  Edit("max_id = max_id + 1000");  // Leaf's server has [1, 1001)
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1001, 1011}));
  EXPECT_EQ(Row(), "1011 100");
}

TEST_F(MysqlStoreTest, TinyidGivesTheNumbersUpToMaxAndSeesThatWeWereThere) {
  CreateTable(MysqlForm::kTinyid);
  InsertRow(1);
  Edit("max_id = max_id + 1000, version = version + 1");  // its server has (0, 1000]
  EXPECT_EQ(store_->Advance(tag_, 1, 10).value_or({}), (Range{1001, 1011}));
  EXPECT_EQ(Row(), "1010 100");
  const auto version = server_->Query(std::string("SELECT version FROM ") + kTable);
  ASSERT_TRUE(version.ok());
  EXPECT_EQ(version->at(0).at(0), "2");
}

TEST_F(MysqlStoreTest, ATinyidRowThatSharesItsNumbersIsRefused) {
  CreateTable(MysqlForm::kTinyid);
  InsertRow(1);
  Edit("delta = 2, remainder = 1");
  const auto refused = store_->Advance(tag_, 1, 10);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_THAT(refused.status().message(), HasSubstr("delta is 2"));
  EXPECT_EQ(Row(), "0 100");
}

TEST_F(MysqlStoreTest, AColumnThatIsTooNarrowGivesNothing) {
  ASSERT_EQ(server_->Run(std::string("ALTER TABLE ") + kTable + " MODIFY max_id INT NOT NULL"),
            Status());
  ASSERT_TRUE(store_->Advance(tag_, 1, 2'147'483'000).ok());
  EXPECT_EQ(store_->Advance(tag_, 1, 1000).code(), Code::kExhausted);
  EXPECT_EQ(Row(), "2147483001 2147483000");
}

// --- connections --------------------------------------------------------------------------------

TEST_F(MysqlStoreTest, WhoeverIsNotLetInSaysWhyAndNeverShowsThePassword) {
  MysqlPlace place = PlaceOf(*server_);
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

TEST_F(MysqlStoreTest, WhatIsNotThereIsNotFound) {
  MysqlPlace place = PlaceOf(*server_);
  ASSERT_EQ(server_->Run(std::string("DROP TABLE ") + kTable), Status());
  EXPECT_EQ(store_->Advance(tag_, 1, 10).code(), Code::kNotFound);
  place.address.port = static_cast<uint16_t>(FreePort());
  EXPECT_EQ(Open(place)->Check(tag_).code(), Code::kUnavailable);
}

TEST_F(MysqlStoreTest, AServerThatTakesNoWritesIsUnavailable) {
  ASSERT_TRUE(store_->Advance(tag_, 1, 10).ok());
  ASSERT_EQ(server_->Run("SET GLOBAL read_only = 1"), Status());
  EXPECT_EQ(store_->Advance(tag_, 11, 10).code(), Code::kUnavailable);
  ASSERT_EQ(server_->Run("SET GLOBAL read_only = 0"), Status());
  EXPECT_EQ(Use(*store_).value_or(Range{}), (Range{11, 21}));
}

TEST_F(MysqlStoreTest, ServerDefaultsDoNotLoseWrites) {
  ASSERT_EQ(server_->Run("SET GLOBAL autocommit = 0"), Status());
  const auto store = Open(PlaceOf(*server_));
  EXPECT_EQ(store->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  EXPECT_EQ(Row(), "11 10");
  ASSERT_EQ(server_->Run("SET GLOBAL autocommit = 1"), Status());
}

TEST_F(MysqlStoreTest, ALostAnswerIsUnknownAndItsRangeIsNeverGivenAgain) {
  TcpProxy proxy(server_->port());
  MysqlPlace place = PlaceOf(*server_);
  place.address.port = static_cast<uint16_t>(proxy.port());
  place.time_limit = Milliseconds(1000);
  const auto store = Open(place);
  ASSERT_EQ(store->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  proxy.DropAnswers(true);
  EXPECT_EQ(store->Advance(tag_, 11, 10).code(), Code::kUnknown);
  proxy.DropAnswers(false);
  ASSERT_TRUE(Eventually(kPatience, [&] { return store->Advance(tag_, 11, 10).ok(); }));
  EXPECT_EQ(Row().substr(0, 2), "21");  // reading the row came first, and moved nothing
}

TEST_F(MysqlStoreTest, AConnectionThatWasCutIsMadeAgain) {
  TcpProxy proxy(server_->port());
  MysqlPlace place = PlaceOf(*server_);
  place.address.port = static_cast<uint16_t>(proxy.port());
  const auto store = Open(place);
  ASSERT_TRUE(Use(*store).has_value());
  proxy.Cut();
  EXPECT_TRUE(Eventually(kPatience, [&] { return Use(*store).has_value(); }));
}

TEST(MysqlTableTest, NamesThatAreNoNamesAreRefused) {
  for (const char* name : {"", "a b", "a`b", "a;b", ".a", "a.", "a.b.c", "t--"}) {
    EXPECT_EQ(MysqlTable::Make(MysqlForm::kFirn, name).code(), Code::kInvalid) << name;
  }
  EXPECT_EQ(MysqlTable::Make(MysqlForm::kLeaf, "db.t$1")->name(), "`db`.`t$1`");
}

TEST(MysqlTableTest, AnAnswerThatCannotBeGivesNoRange) {
  const MysqlTable table = *MysqlTable::Make(MysqlForm::kFirn, "t");
  EXPECT_EQ(table.RangeAt(110, 10, 100).value_or({}), (Range{100, 110}));
  EXPECT_EQ(table.RangeAt(109, 10, 100).code(), Code::kCorrupt);
  EXPECT_EQ(table.RangeAt(0, 10, 0).code(), Code::kCorrupt);
  EXPECT_EQ(table.RangeAt(uint64_t{1} << 63, 10, 100).code(), Code::kCorrupt);
}

}  // namespace
}  // namespace firn
