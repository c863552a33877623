// Rows that servers of Leaf and Tinyid advance by their own statements, at the same time as Firn.

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "tests/server/store/table_store_fixture.h"

namespace firn {
namespace {

constexpr int kRangesEach = 60;
constexpr int64_t kStep = 100;  // of the rows that InsertRowSql inserts

// Another program's connection. Its statements are what that program sends.
class Stranger {
 public:
  using Rows = std::vector<SqlConnection::Row>;

  Stranger(std::unique_ptr<SqlConnection> connection, SqlDialect dialect)
      : connection_(std::move(connection)), dialect_(dialect) {
    EXPECT_EQ(connection_->Open(), Status());
  }

  // In MySQL's notation; PostgreSQL numbers the parameters.
  SqlConnection::Answer Say(std::string sql,
                            const std::vector<SqlConnection::Parameter>& parameters = {}) {
    for (size_t i = 1, at = sql.find('?'); at != sql.npos; at = sql.find('?'), ++i) {
      if (dialect_ == SqlDialect::kMysql) break;
      sql.replace(at, 1, "$" + std::to_string(i));
    }
    auto answer = connection_->Execute(sql, parameters);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return answer.value_or({});
  }

  // Leaf: IDAllocDaoImpl.updateMaxIdAndGetLeafAlloc, and SegmentIDGenImpl's ranges below max.
  Range LeafRange(const std::string& tag) {
    Say("START TRANSACTION");
    Say("UPDATE ranges SET max_id = max_id + step WHERE biz_tag = ?", {tag});
    const Rows rows = Say("SELECT biz_tag, max_id, step FROM ranges WHERE biz_tag = ?", {tag}).rows;
    Say("COMMIT");
    const int64_t max = std::stoll(rows.at(0).at(1)), step = std::stoll(rows.at(0).at(2));
    return {max - step, max};
  }

  // Tinyid: DbSegmentIdServiceImpl.getNextSegmentId, which retries if another server has changed
  // the row's version; ranges up to max itself.
  Range TinyidRange(const std::string& tag) {
    for (;;) {
      const Rows rows =
          Say("SELECT id, max_id, step, version FROM ranges WHERE biz_type = ?", {tag}).rows;
      const int64_t id = std::stoll(rows.at(0).at(0)), max = std::stoll(rows.at(0).at(1)),
                    step = std::stoll(rows.at(0).at(2)), version = std::stoll(rows.at(0).at(3));
      const auto moved =
          Say("UPDATE ranges SET max_id = ?, update_time = NOW(), version = version + 1"
              " WHERE id = ? AND max_id = ? AND version = ? AND biz_type = ?",
              {max + step, id, max, version, tag});
      if (moved.affected == 1) return {max + 1, max + step + 1};
    }
  }

 private:
  const std::unique_ptr<SqlConnection> connection_;
  const SqlDialect dialect_;
};

class TableSharedRowsTest : public TableStoreFixture {
 protected:
  // Ranges that threads of `strangers` and of Firn take from one row at the same time.
  std::vector<Range> TakeTogether(const std::function<Range(Stranger&)>& theirs) {
    std::mutex mutex;
    std::vector<Range> all;
    const auto keep = [&](Range range) {
      const std::scoped_lock lock(mutex);
      all.push_back(range);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] {
        Stranger stranger(Connection(PlaceOf(*server_)), GetParam());
        for (int n = 0; n < kRangesEach; ++n) keep(theirs(stranger));
      });
      threads.emplace_back([&, i] {
        const auto store = Open(PlaceOf(*server_));
        for (int n = 0; n < kRangesEach; ++n) {
          const Result<Range> range = store->Advance(tag_, 1, 7 + i);
          EXPECT_TRUE(range.ok()) << range.status();
          if (range.ok()) keep(*range);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
  }

  // Checks that the ranges follow each other from the row's first number on.
  static void ExpectOneRow(std::vector<Range> ranges, int64_t begin) {
    EXPECT_EQ(ranges.size(), size_t{6} * kRangesEach);
    std::sort(ranges.begin(), ranges.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
    for (const Range& range : ranges) {
      ASSERT_EQ(range.begin, begin);
      begin = range.end;
    }
  }
};

TEST_P(TableSharedRowsTest, RangesOfLeafAndFirnNeverOverlap) {
  CreateTable(TableForm::kLeaf);
  InsertRow(1);
  const std::vector<Range> all =
      TakeTogether([&](Stranger& leaf) { return leaf.LeafRange(tag_.name); });
  ExpectOneRow(all, 1);
}

TEST_P(TableSharedRowsTest, RangesOfTinyidAndFirnNeverOverlap) {
  CreateTable(TableForm::kTinyid);
  InsertRow(1);
  const std::vector<Range> all =
      TakeTogether([&](Stranger& tinyid) { return tinyid.TinyidRange(tag_.name); });
  ExpectOneRow(all, 1);
}

// Another program moves the row between two readings: the ledger follows above its range.
TEST_P(TableSharedRowsTest, ContinuesAboveRangesThatOtherServersTook) {
  CreateTable(TableForm::kLeaf);
  InsertRow(1);
  Stranger leaf(Connection(PlaceOf(*server_)), GetParam());
  EXPECT_EQ(Use(*store_).value_or(Range{}), (Range{1, 11}));
  EXPECT_EQ(leaf.LeafRange(tag_.name), (Range{11, 11 + kStep}));
  EXPECT_EQ(Use(*store_).value_or(Range{}), (Range{111, 121}));
  high_ = 5000;  // a ledger that has jumped raises their row
  EXPECT_EQ(Use(*store_).value_or(Range{}), (Range{5000, 5010}));
  EXPECT_EQ(leaf.LeafRange(tag_.name), (Range{5010, 5010 + kStep}));
}

INSTANTIATE_TEST_SUITE_P(Databases, TableSharedRowsTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
