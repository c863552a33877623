#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/store_link.h"
#include "server/store/table/late_tags.h"
#include "server/store/table/range_table.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// Ranges from a database table, in any dialect and form of range_table.h.
//
//  1. A range counts only if the statement that moved the row confirms it: no error, exactly one
//     row changed, and the new number in its answer.
//  2. A range begins at `at_least` or above, whatever the row contains: if the database has lost
//     data, the store skips the difference and raises an alarm.
//  3. A row with invalid values, or far beyond the used numbers, is left unchanged until an
//     operator corrects it. The refusal says what is wrong.
//  4. A missing row is created in Firn's own table, and only while the tag has no ledger.
//  5. A locked row delays its own tag, and others only for a while (late_tags.h). The server ends a
//     statement that the client has given up, so that it does not take effect later.
//  6. A row that is marked with a cluster (its column `cluster`, in Firn's own table) moves for
//     that cluster only, which the moving statement itself checks. A tag whose ledger may pick
//     ranges while the database is unreachable marks its row with every range.
//
// Other programs may advance the same rows, if they do so as the table's form requires.
//
// Owned by one thread, which waits for the server up to a few times the place's time limit.
class TableStore final : public RangeStore {
 public:
  struct Options {
    std::string name;            // as tags name it
    Backoff::Options backoff{};  // between attempts to connect
  };
  // Receives a sentence whenever the database has lost data.
  using Alarm = std::function<void(const std::string&)>;

  // `clock` and `entropy` must outlive this.
  TableStore(Options options, std::unique_ptr<SqlConnection> connection, RangeTable table,
             const Clock& clock, Entropy& entropy, Alarm alarm);

  std::string_view name() const override { return options_.name; }
  void Listen(const LedgerWord& word) override { word_ = word; }
  bool permits_stand_in() const override { return table_.form() == TableForm::kFirn; }
  bool away() const override { return away_; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  struct Wanted;

  Status Connect();
  Status Lost(Status why);
  std::string_view RightFor(const std::string& sql) const;
  // Executes one statement. An error that an operator can resolve contains the remedy.
  Result<SqlConnection::Answer> Execute(const std::string& sql,
                                        const std::vector<SqlConnection::Parameter>& parameters);
  // Returns nullopt if there is no row.
  Result<std::optional<RangeTable::State>> ReadRow(const TagDefinition& tag);
  Result<RangeTable::State> ReadOrMakeRow(const TagDefinition& tag, const Wanted& wanted);
  // The statement that adds the column `cluster` to an older table.
  std::string AddColumn() const;
  Status NoRow(const TagDefinition& tag, int64_t at_least) const;
  // Returns how the row may be moved for this cluster's tag, or why it may not.
  Result<RowUse> UseOf(const TagDefinition& tag, const RangeTable::State& row) const;
  Result<Range> MoveRow(const TagDefinition& tag, const Wanted& wanted, RowUse use);
  void JudgeRow(const std::string& tag, int64_t row, int64_t at_least);
  Result<Range> AdvanceRow(const TagDefinition& tag, int64_t at_least, int64_t size);
  // Records what a call's outcome means for the connection and the tag.
  void Learn(const TagDefinition& tag, const Status& end, BootMs began);

  const Options options_;
  const RangeTable table_;
  const Alarm alarm_;
  const Clock& clock_;
  const std::unique_ptr<SqlConnection> connection_;
  StoreLink link_;
  LedgerWord word_;
  bool away_ = false;       // at the last call's failure
  bool lost_away_ = false;  // when the connection was lost, or could not be made
  LateTags late_;
  std::map<std::string, int64_t> given_;  // by tag: the end of the last range
};

}  // namespace firn
