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

// Whose words a statement is made of.
enum class SqlDialect : uint8_t { kMysql, kPostgres };

// Whose table it is.
enum class TableForm : uint8_t {
  kFirn,    // Firn's own, see FirnTableSql
  kLeaf,    // Leaf's `leaf_alloc`: a row at max has given every number below max
  kTinyid,  // Tinyid's `tiny_id_info`: a row at max has given every number up to max itself
};
std::optional<TableForm> ParseTableForm(std::string_view word);

// Whose row it is.
enum class RowUse : uint8_t {
  kUnmarked,  // the table has no column that would say it
  kShared,    // nobody's by name: any cluster takes ranges of it
  kOwned,     // one cluster's, the only one that takes ranges of it
};

// What creates Firn's own table `name`; users have it as tools/package/firn_tag.sql and
// firn_tag_postgres.sql. Names of tags are compared byte by byte: to Firn `order` and `Order` are
// two tags. (None ends with a blank, which the collation that MySQL and MariaDB share would not
// see.)
std::string FirnTableSql(SqlDialect dialect, std::string_view name);

// A table of ranges, a row a tag: its statements, and what their answers mean. A value; it talks to
// nobody.
//
// Inside, a row's number is what the column holds, and a range's begin is the first number that it
// may give; they differ by one for Tinyid.
class RangeTable {
 public:
  // kInvalid for a name that is not letters, digits, _ or $, with a database (PostgreSQL: a schema)
  // in front or not.
  static Result<RangeTable> Make(SqlDialect dialect, TableForm form, std::string_view name);

  SqlDialect dialect() const { return dialect_; }
  TableForm form() const { return form_; }
  const std::string& name() const { return name_; }

  // SELECT with the tag's name; max, step, delta and cluster of its row.
  const std::string& read() const { return read_; }
  // UPDATE: moves the row, and answers its new number, which RangeAfter looks for. A row beyond the
  // ceiling, negative, or without a step stays as it is, and one of another cluster, too. What it
  // is given: AdvanceParameters.
  const std::string& advance(RowUse use) const { return advance_[static_cast<size_t>(use)]; }
  struct Advance {
    RowUse use;
    int64_t least, size;
    std::string tag;
    int64_t ceiling;
    std::string cluster;  // the row is marked with it, or may be
  };
  static std::vector<SqlConnection::Parameter> AdvanceParameters(const Advance& advance);
  // INSERT with (tag, number, step); does nothing where there is a row. Firn's own table only.
  const std::string& insert() const { return insert_; }

  // The row's number from which a range of at least `begin` follows, and the other way round.
  int64_t RowBefore(int64_t begin) const { return begin - first_; }
  int64_t BeginAfter(int64_t row) const { return row + first_; }

  // The range that an answer to `advance` gives, one row having changed.
  Result<Range> RangeAfter(const SqlConnection::Answer& answer, int64_t size,
                           int64_t at_least) const;
  // The range that ends with the row at `row`. kCorrupt when that cannot be.
  Result<Range> RangeAt(uint64_t row, int64_t size, int64_t at_least) const;

  // A row as it was read.
  struct State {
    int64_t number = 0;
    std::optional<std::string>
        cluster{};  // whose it is; "": nobody's; nothing: it has no such column
  };
  // When numbers may follow it: kCorrupt with a sentence for a row that somebody has edited,
  // kInvalid for one that shares its numbers with other databases.
  Result<State> StateOf(const SqlConnection::Row& row) const;

 private:
  RangeTable(SqlDialect dialect, TableForm form, std::string name);
  std::string ReadSql() const;
  std::string AdvanceSql(RowUse use) const;

  SqlDialect dialect_;
  TableForm form_;
  std::string name_;
  int64_t first_;  // of a range: this much above the row's number before it
  std::string read_;
  std::array<std::string, 3> advance_;  // by RowUse
  std::string insert_;
};

}  // namespace firn
