#include "server/store/table/range_table.h"

#include <limits>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr size_t kNameMax = 128;
constexpr const char* kNoColumn = "-";  // instead of the cluster's uuid

bool IsTableName(std::string_view name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '$';
  };
  size_t dots = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool inside = i > 0 && i + 1 < name.size();
    if (name[i] == '.' && inside && ++dots == 1) continue;
    if (!is_plain(name[i])) return false;
  }
  return !name.empty() && name.size() <= kNameMax;
}

// `db`.`table`, or "schema"."table"
std::string QuoteName(SqlDialect dialect, std::string_view name) {
  const std::string mark = dialect == SqlDialect::kMysql ? "`" : "\"", dot = Cat(mark, ".", mark);
  std::string out = mark;
  for (const char c : name) out += c == '.' ? dot : std::string(1, c);
  return out + mark;
}

// Replaces each `?` by a numbered parameter for PostgreSQL.
std::string Translated(SqlDialect dialect, const std::string& sql) {
  if (dialect == SqlDialect::kMysql) return sql;
  std::string out;
  int count = 0;
  for (const char c : sql) out += c == '?' ? Cat("$", ++count) : std::string(1, c);
  return out;
}

Result<int64_t> Number(const char* column, const std::string& text) {
  if (const auto number = ParseNumber<int64_t>(text)) return *number;
  return Corrupt(
      Cat(column, " is ", text.empty() ? "NULL" : Quoted(text), ", not a number that fits"));
}

}  // namespace

std::optional<TableForm> ParseTableForm(std::string_view word) {
  if (word == "firn") return TableForm::kFirn;
  if (word == "leaf") return TableForm::kLeaf;
  if (word == "tinyid") return TableForm::kTinyid;
  return std::nullopt;
}

std::string FirnTableSql(SqlDialect dialect, std::string_view name) {
  const bool mysql = dialect == SqlDialect::kMysql;
  return Cat("CREATE TABLE ", name, " (\n", "  biz_tag VARCHAR(128) ",
             mysql ? "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin" : "COLLATE \"C\"",
             " NOT NULL,\n  max_id BIGINT NOT NULL,\n  step BIGINT NOT NULL,\n"
             "  cluster VARCHAR(64) NOT NULL DEFAULT '',\n  update_time ",
             mysql ? "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
                   : "TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP",
             ",\n  PRIMARY KEY (biz_tag)\n)", mysql ? " ENGINE = InnoDB" : "");
}

Result<RangeTable> RangeTable::Make(SqlDialect dialect, TableForm form, std::string_view name) {
  if (!IsTableName(name)) return Invalid(Quoted(name) + " is not a table name");
  return RangeTable(dialect, form, QuoteName(dialect, name));
}

RangeTable::RangeTable(SqlDialect dialect, TableForm form, std::string name)
    : dialect_(dialect),
      form_(form),
      name_(std::move(name)),
      first_(form == TableForm::kTinyid ? 1 : 0),
      read_(Translated(dialect, ReadSql())) {
  for (const RowUse use : {RowUse::kUnmarked, RowUse::kOwned}) {
    advance_[static_cast<size_t>(use)] = Translated(dialect, AdvanceSql(use));
  }
  const bool mysql = dialect == SqlDialect::kMysql;
  if (form == TableForm::kFirn) {
    insert_ = Translated(dialect, Cat(mysql ? "INSERT IGNORE INTO " : "INSERT INTO ", name_,
                                      " (biz_tag, max_id, step) VALUES (?, ?, ?)",
                                      mysql ? "" : " ON CONFLICT DO NOTHING"));
  }
}

// Also works for an older table without the column `cluster`: SQL resolves the name in the
// innermost scope that has it, which is the table or the surrounding query.
std::string RangeTable::ReadSql() const {
  if (form_ == TableForm::kFirn) {
    return Cat("SELECT max_id, step, 1, (SELECT cluster FROM ", name_,
               " AS same WHERE same.biz_tag = here.biz_tag) FROM ", name_,
               " AS here CROSS JOIN (SELECT '", kNoColumn,
               "' AS cluster) AS otherwise WHERE here.biz_tag = ?");
  }
  const bool tinyid = form_ == TableForm::kTinyid;
  return Cat("SELECT max_id, step, ", tinyid ? "delta" : "1", ", '", kNoColumn, "' FROM ", name_,
             tinyid ? " WHERE biz_type = ?" : " WHERE biz_tag = ?");
}

std::string RangeTable::AdvanceSql(RowUse use) const {
  const bool tinyid = form_ == TableForm::kTinyid, mysql = dialect_ == SqlDialect::kMysql;
  const std::string moved = "GREATEST(max_id, ?) + ?";
  std::string more;
  // Tinyid's own servers detect changes by `version`, so they must be able to detect Firn's.
  if (tinyid) more = ", version = version + 1";
  if (form_ == TableForm::kFirn && !mysql) more = ", update_time = CURRENT_TIMESTAMP";
  if (use == RowUse::kOwned) more += ", cluster = ?";
  return Cat("UPDATE ", name_, " SET max_id = ", mysql ? "LAST_INSERT_ID(" + moved + ")" : moved,
             more, tinyid ? " WHERE biz_type = ?" : " WHERE biz_tag = ?",
             " AND max_id BETWEEN 0 AND ? AND step > 0", tinyid ? " AND delta = 1" : "",
             use == RowUse::kUnmarked ? "" : " AND cluster IN ('', ?)",
             mysql ? "" : " RETURNING max_id");
}

std::string RangeTable::InsertText(std::string_view tag, int64_t number, int64_t step) const {
  std::string literal;
  for (const char c : tag) {
    literal += c;
    if (c == '\'' || (c == '\\' && dialect_ == SqlDialect::kMysql)) literal += c;
  }
  const bool tinyid = form_ == TableForm::kTinyid;
  return Cat("INSERT INTO ", name_,
             tinyid ? " (biz_type, begin_id, max_id, step)" : " (biz_tag, max_id, step)",
             " VALUES ('", literal, "', ", number, tinyid ? Cat(", ", number) : "", ", ", step,
             ")");
}

std::vector<SqlConnection::Parameter> RangeTable::AdvanceParameters(const Advance& advance) {
  std::vector<SqlConnection::Parameter> all{advance.least, advance.size};
  if (advance.use == RowUse::kOwned) all.emplace_back(advance.cluster);
  all.emplace_back(advance.tag);
  all.emplace_back(advance.ceiling);
  if (advance.use != RowUse::kUnmarked) all.emplace_back(advance.cluster);
  return all;
}

Result<Range> RangeTable::RangeAfter(const SqlConnection::Answer& answer, int64_t size,
                                     int64_t at_least) const {
  if (dialect_ == SqlDialect::kMysql) return RangeAt(answer.insert_id, size, at_least);
  if (answer.rows.size() != 1 || answer.rows.front().size() != 1) {
    return Internal("the answer does not contain the row's number");
  }
  FIRN_ASSIGN(const int64_t row, Number("max_id", answer.rows.front().front()));
  return RangeAt(static_cast<uint64_t>(row), size, at_least);
}

Result<Range> RangeTable::RangeAt(uint64_t row, int64_t size, int64_t at_least) const {
  if (row > uint64_t{kMost} || static_cast<int64_t>(row) < size) {
    return Corrupt(Cat("the database returned ", row, ", which cannot be the end of a range"));
  }
  const int64_t begin = BeginAfter(static_cast<int64_t>(row) - size);
  if (begin < at_least) {
    return Corrupt(Cat("the database returned ", row, ", which is below numbers that were used"));
  }
  return Range{.begin = begin, .end = begin + size};
}

Result<RangeTable::State> RangeTable::StateOf(const SqlConnection::Row& row) const {
  if (row.size() != 4) return Internal("the row does not have the requested columns");
  FIRN_ASSIGN(const int64_t number, Number("max_id", row[0]));
  FIRN_ASSIGN(const int64_t step, Number("step", row[1]));
  FIRN_ASSIGN(const int64_t delta, Number("delta", row[2]));
  if (number < 0) return Corrupt("max_id is " + row[0] + ", which is negative; correct the row");
  if (step <= 0) return Corrupt("step is " + row[1] + ", which is invalid; correct the row");
  if (delta != 1) {
    return Invalid(
        "delta is " + row[2] +
        ": other databases issue the numbers in between; stop all Tinyid servers, import "
        "the tag from every database, then set delta = 1, remainder = 0");
  }
  if (row[3] == kNoColumn) return State{number, std::nullopt};
  return State{number, row[3]};
}

}  // namespace firn
