#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/time/backoff.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/range_store.h"
#include "server/store/mysql/mysql_connection.h"
#include "server/store/mysql/mysql_table.h"
#include "server/store/store_link.h"

namespace firn {

// Ranges out of a table in MySQL or MariaDB, of any of the forms of mysql_table.h.
//
// 1. A range counts when the very statement that moved the row said so: no error, exactly one row
//    changed, the new number in that statement's answer.
// 2. A range begins at `at_least` or above, whatever the row says: a database that went back in
//    time is jumped over, with an alarm.
// 3. A row that somebody has edited into nonsense, or far beyond what has been used, stays as it is
//    until somebody mends it, and the refusal says what is wrong with it.
// 4. A row that is missing is made in Firn's own table, and only while the tag has no ledger.
//
// Other programs may advance the same rows, if they do so as the table's form says.
//
// Owned by one thread, which waits for the server up to a few times the place's time limit.
class MysqlStore final : public RangeStore {
 public:
  struct Options {
    std::string name;  // as tags name it
    MysqlPlace place;
    Backoff::Options backoff{};  // between attempts to connect
  };
  // Told, in a sentence, of each time that the database turns out to have gone back in time.
  using Alarm = std::function<void(const std::string&)>;

  MysqlStore(Options options, MysqlTable table, const Clock& clock, Entropy& entropy, Alarm alarm);

  std::string_view name() const override { return options_.name; }
  Status Check(const TagDefinition& tag) override;
  Result<Range> Advance(const TagDefinition& tag, int64_t at_least, int64_t size) override;

 private:
  struct Wanted;

  Status Connect();
  // Its number; nothing when there is no row.
  Result<std::optional<int64_t>> ReadRow(const TagDefinition& tag);
  Result<int64_t> ReadOrMakeRow(const TagDefinition& tag, const Wanted& wanted);
  Status NoRow() const;
  Result<Range> MoveRow(const TagDefinition& tag, const Wanted& wanted);

  const Options options_;
  const MysqlTable table_;
  const Alarm alarm_;
  MysqlConnection connection_;
  StoreLink link_;
};

}  // namespace firn
