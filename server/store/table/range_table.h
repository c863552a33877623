#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "server/issue/range.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// SQL dialect of the statements.
enum class SqlDialect : uint8_t { kMysql, kPostgres };

// Layout of the table.
enum class TableForm : uint8_t {
  kFirn,    // Firn's own, see FirnTableSql
  kLeaf,    // Leaf's `leaf_alloc`: all numbers below max have been returned
  kTinyid,  // Tinyid's `tiny_id_info`: all numbers up to and including max have been returned
};
std::optional<TableForm> ParseTableForm(std::string_view word);

// How a statement handles a row's cluster mark.
enum class RowUse : uint8_t {
  kUnmarked,  // ignores the mark: the table has no column for it
  kOwned,     // advances only rows that are unmarked or this cluster's, and marks them as this
              // cluster's
};

// Returns the SQL that creates Firn's own table `name`. The package contains it as
// tools/package/firn_tag.sql and firn_tag_postgres.sql. Tag names are compared byte by byte:
// `order` and `Order` are two tags. (The collation that MySQL and MariaDB share ignores trailing
// blanks, but tag names cannot have any.)
std::string FirnTableSql(SqlDialect dialect, std::string_view name);

// The statements for a table of ranges, with one row per tag, and the meaning of their answers. A
// value without I/O.
//
// A row's number is the column's value, and a range's begin is its first number. For Tinyid they
// differ by one.
class RangeTable {
 public:
  // kInvalid for a name that does not consist of letters, digits, _ or $, optionally after a
  // database (PostgreSQL: a schema) and a dot.
  static Result<RangeTable> Make(SqlDialect dialect, TableForm form, std::string_view name);

  SqlDialect dialect() const { return dialect_; }
  TableForm form() const { return form_; }
  const std::string& name() const { return name_; }

  // SELECT by the tag's name: max, step, delta and cluster of its row.
  const std::string& read() const { return read_; }
  // UPDATE: advances the row and returns its new number, which RangeAfter reads. Does not change a
  // row that is above the ceiling, negative, without a step, or marked for another cluster. Its
  // parameters are AdvanceParameters.
  const std::string& advance(RowUse use) const { return advance_[static_cast<size_t>(use)]; }
  struct Advance {
    RowUse use;
    int64_t least, size;
    std::string tag;
    int64_t ceiling;
    std::string cluster;  // the row's mark, if it has one
  };
  static std::vector<SqlConnection::Parameter> AdvanceParameters(const Advance& advance);
  // INSERT with (tag, number, step); has no effect if the row exists. Firn's own table only.
  const std::string& insert() const { return insert_; }
  // Returns the statement with which an operator creates a tag's row, for messages.
  std::string InsertText(std::string_view tag, int64_t number, int64_t step) const;

  // Converts between a range's begin and the row's number before the range.
  int64_t RowBefore(int64_t begin) const { return begin - first_; }
  int64_t BeginAfter(int64_t row) const { return row + first_; }

  // Returns the range in an answer to `advance` that changed one row.
  Result<Range> RangeAfter(const SqlConnection::Answer& answer, int64_t size,
                           int64_t at_least) const;
  // Returns the range that ends at the row's number `row`; kCorrupt if that is impossible.
  Result<Range> RangeAt(uint64_t row, int64_t size, int64_t at_least) const;

  // A row's values.
  struct State {
    int64_t number = 0;
    std::optional<std::string>
        cluster{};  // uuid of its owner; "": none; nullopt: the table has no such column
  };
  // Returns the row's values if the row may be advanced. kCorrupt if it has invalid values;
  // kInvalid if other databases issue a part of its numbers.
  Result<State> StateOf(const SqlConnection::Row& row) const;

 private:
  RangeTable(SqlDialect dialect, TableForm form, std::string name);
  std::string ReadSql() const;
  std::string AdvanceSql(RowUse use) const;

  SqlDialect dialect_;
  TableForm form_;
  std::string name_;
  int64_t first_;  // begin of a range, minus the row's number before the range
  std::string read_;
  std::array<std::string, 2> advance_;  // by RowUse
  std::string insert_;
};

}  // namespace firn
