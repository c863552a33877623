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

// Parameters are written as `?` here; PostgreSQL counts them.
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
             " NOT NULL,\n  max_id BIGINT NOT NULL,\n  step BIGINT NOT NULL,\n  update_time ",
             mysql ? "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP"
                   : "TIMESTAMPTZ NOT NULL DEFAULT CURRENT_TIMESTAMP",
             ",\n  PRIMARY KEY (biz_tag)\n)", mysql ? " ENGINE = InnoDB" : "");
}

Result<RangeTable> RangeTable::Make(SqlDialect dialect, TableForm form, std::string_view name) {
  if (!IsTableName(name)) return Invalid(Quoted(name) + " is no name of a table");
  return RangeTable(dialect, form, QuoteName(dialect, name));
}

RangeTable::RangeTable(SqlDialect dialect, TableForm form, std::string name)
    : dialect_(dialect),
      form_(form),
      name_(std::move(name)),
      first_(form == TableForm::kTinyid ? 1 : 0) {
  const bool tinyid = form == TableForm::kTinyid, mysql = dialect == SqlDialect::kMysql;
  const std::string where = tinyid ? " WHERE biz_type = ?" : " WHERE biz_tag = ?";
  const std::string moved = "GREATEST(max_id, ?) + ?";
  std::string more;
  // Tinyid's own servers notice each other by `version`; they must notice us.
  if (tinyid) more = ", version = version + 1";
  if (form == TableForm::kFirn && !mysql) more = ", update_time = CURRENT_TIMESTAMP";
  read_ = Translated(dialect,
                     Cat("SELECT max_id, step, ", tinyid ? "delta" : "1", " FROM ", name_, where));
  advance_ =
      Translated(dialect, Cat("UPDATE ", name_,
                              " SET max_id = ", mysql ? "LAST_INSERT_ID(" + moved + ")" : moved,
                              more, where, " AND max_id BETWEEN 0 AND ? AND step > 0",
                              tinyid ? " AND delta = 1" : "", mysql ? "" : " RETURNING max_id"));
  if (form == TableForm::kFirn) {
    insert_ = Translated(dialect, Cat(mysql ? "INSERT IGNORE INTO " : "INSERT INTO ", name_,
                                      " (biz_tag, max_id, step) VALUES (?, ?, ?)",
                                      mysql ? "" : " ON CONFLICT DO NOTHING"));
  }
}

Result<Range> RangeTable::RangeAfter(const SqlConnection::Answer& answer, int64_t size,
                                     int64_t at_least) const {
  if (dialect_ == SqlDialect::kMysql) return RangeAt(answer.insert_id, size, at_least);
  if (answer.rows.size() != 1 || answer.rows.front().size() != 1) {
    return Internal("an answer without the row's number");
  }
  FIRN_ASSIGN(const int64_t row, Number("max_id", answer.rows.front().front()));
  return RangeAt(static_cast<uint64_t>(row), size, at_least);
}

Result<Range> RangeTable::RangeAt(uint64_t row, int64_t size, int64_t at_least) const {
  if (row > uint64_t{kMost} || static_cast<int64_t>(row) < size) {
    return Corrupt(Cat("the answer is ", row, ", no end of a range"));
  }
  const int64_t begin = BeginAfter(static_cast<int64_t>(row) - size);
  if (begin < at_least) {
    return Corrupt(Cat("the answer is ", row, ", below what has been used"));
  }
  return Range{.begin = begin, .end = begin + size};
}

Result<int64_t> RangeTable::NumberOf(const SqlConnection::Row& row) const {
  if (row.size() != 3) return Internal("a row with other columns than were asked for");
  FIRN_ASSIGN(const int64_t number, Number("max_id", row[0]));
  FIRN_ASSIGN(const int64_t step, Number("step", row[1]));
  FIRN_ASSIGN(const int64_t delta, Number("delta", row[2]));
  if (number < 0) return Corrupt("max_id is " + row[0] + ": a negative number was set by hand");
  if (step <= 0) return Corrupt("step is " + row[1] + ": it was set by hand; mend it");
  if (delta != 1) {
    return Invalid("delta is " + row[2] +
                   ": other databases give the numbers between. Once no Tinyid server runs, import "
                   "the tag from all of them and set delta = 1, remainder = 0");
  }
  return number;
}

}  // namespace firn
