#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/counter_watch.h"
#include "server/store/store_link.h"
#include "server/store/table/late_tags.h"
#include "server/store/table/range_table.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// Ranges from a database table, for any dialect and form of range_table.h.
//
//  1. A range counts only if the statement that advanced the row confirms it: no error, exactly one
//     changed row, and the new number in its answer.
//  2. A range begins at `at_least` or above, even if the row is lower: if the database has lost
//     data, the store skips the difference and raises an alarm.
//  3. A row with invalid values, or far above the used numbers, is not changed until an operator
//     corrects it. The refusal names the fault.
//  4. A missing row is created only in Firn's own table, and only while the tag has no ledger.
//  5. A locked row delays other tags only for a limited time (late_tags.h). The server ends a
//     statement that the client has given up, so that it does not take effect later.
//  6. If a row is marked with a cluster (column `cluster` of Firn's own table), only that cluster
//     can advance it; the UPDATE itself checks this. For a tag whose ledger may pick ranges while
//     the database is unreachable, every range writes the mark.
//
// Other programs may advance the same rows if they follow the rules of the table's form.
//
// Owned by one thread. A call can block for a few times the place's time limit.
class TableStore final : public RangeStore {
 public:
  struct Options {
    std::string name;            // its name in tag definitions
    Backoff::Options backoff{};  // between attempts to connect
  };

  // `clock` and `entropy` must outlive this.
  TableStore(Options options, std::unique_ptr<SqlConnection> connection, RangeTable table,
             const Clock& clock, Entropy& entropy, CounterWatch::Alarm alarm);

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
  // Executes one statement. If an operator can resolve an error, it contains the remedy.
  Result<SqlConnection::Answer> Execute(const std::string& sql,
                                        const std::vector<SqlConnection::Parameter>& parameters);
  // Returns nullopt if there is no row.
  Result<std::optional<RangeTable::State>> ReadRow(const TagDefinition& tag);
  Result<RangeTable::State> ReadOrMakeRow(const TagDefinition& tag, const Wanted& wanted);
  // Returns the statement that adds the column `cluster` to an older table.
  std::string AddColumn() const;
  Status NoRow(const TagDefinition& tag, int64_t at_least) const;
  // Returns how the row may be advanced for this cluster's tag, or the reason why it must not.
  Result<RowUse> UseOf(const TagDefinition& tag, const RangeTable::State& row) const;
  Result<Range> MoveRow(const TagDefinition& tag, const Wanted& wanted, RowUse use);
  Result<Range> AdvanceRow(const TagDefinition& tag, int64_t at_least, int64_t size);
  // Updates the states of the connection and the tag after a call.
  void Learn(const TagDefinition& tag, const Status& end, BootMs began);

  const Options options_;
  const RangeTable table_;
  const Clock& clock_;
  const std::unique_ptr<SqlConnection> connection_;
  StoreLink link_;
  LedgerWord word_;
  bool away_ = false;  // whether the server was unreachable at the last failure
  bool lost_away_ =
      false;  // whether it was unreachable when the connection was lost or could not be made
  LateTags late_;
  CounterWatch watch_;
};

}  // namespace firn
