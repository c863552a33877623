#include "server/store/mysql/mysql_table.h"

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

// `db`.`table`
std::string QuoteName(std::string_view name) {
  std::string out = "`";
  for (const char c : name) out += c == '.' ? std::string("`.`") : std::string(1, c);
  return out + "`";
}

Result<int64_t> Number(const char* column, const std::string& text) {
  if (const auto number = ParseNumber<int64_t>(text)) return *number;
  return Corrupt(
      Cat(column, " is ", text.empty() ? "NULL" : Quoted(text), ", not a number that fits"));
}

}  // namespace

std::optional<MysqlForm> ParseMysqlForm(std::string_view word) {
  if (word == "firn") return MysqlForm::kFirn;
  if (word == "leaf") return MysqlForm::kLeaf;
  if (word == "tinyid") return MysqlForm::kTinyid;
  return std::nullopt;
}

Result<MysqlTable> MysqlTable::Make(MysqlForm form, std::string_view name) {
  if (!IsTableName(name)) return Invalid(Quoted(name) + " is no name of a table");
  return MysqlTable(form, QuoteName(name));
}

MysqlTable::MysqlTable(MysqlForm form, std::string name)
    : form_(form), name_(std::move(name)), first_(form == MysqlForm::kTinyid ? 1 : 0) {
  const bool tinyid = form == MysqlForm::kTinyid;
  const std::string where = tinyid ? " WHERE biz_type = ?" : " WHERE biz_tag = ?";
  read_ =
      std::string("SELECT max_id, step, ") + (tinyid ? "delta" : "1") + " FROM " + name_ + where;
  // Tinyid's own servers notice each other by `version`; they must notice us.
  advance_ = "UPDATE " + name_ + " SET max_id = LAST_INSERT_ID(GREATEST(max_id, ?) + ?)" +
             (tinyid ? ", version = version + 1" : "") + where +
             " AND max_id BETWEEN 0 AND ? AND step > 0" + (tinyid ? " AND delta = 1" : "");
  if (form == MysqlForm::kFirn) {
    insert_ = "INSERT IGNORE INTO " + name_ + " (biz_tag, max_id, step) VALUES (?, ?, ?)";
  }
}

Result<Range> MysqlTable::RangeAt(uint64_t row, int64_t size, int64_t at_least) const {
  if (row > uint64_t{kMost} || static_cast<int64_t>(row) < size) {
    return Corrupt(Cat("the answer is ", row, ", no end of a range"));
  }
  const int64_t begin = BeginAfter(static_cast<int64_t>(row) - size);
  if (begin < at_least) {
    return Corrupt(Cat("the answer is ", row, ", below what has been used"));
  }
  return Range{.begin = begin, .end = begin + size};
}

Result<int64_t> MysqlTable::NumberOf(const std::vector<std::string>& row) const {
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
