#include "server/store/table/table_store.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "server/store/jump_limit.h"
#include "server/store/other_cluster.h"

namespace firn {

// The range to take, and the limits of the row's number for it.
struct TableStore::Wanted {
  int64_t at_least;
  int64_t size;
  int64_t row_least;  // the row is raised to at least this
  int64_t ceiling;    // a row above it is left unchanged

  // The ceiling leaves room for the range, so that the row cannot exceed 63 bits.
  Wanted(const RangeTable& table, int64_t least, int64_t numbers)
      : at_least(least), size(numbers), row_least(table.RowBefore(least)) {
    const int64_t most = table.RowBefore(kRangeEnd) - size;
    ceiling = row_least > most - kJumpMax ? most : row_least + kJumpMax;
  }
};

TableStore::TableStore(Options options, std::unique_ptr<SqlConnection> connection, RangeTable table,
                       const Clock& clock, Entropy& entropy, CounterWatch::Alarm alarm)
    : options_(std::move(options)),
      table_(std::move(table)),
      clock_(clock),
      connection_(std::move(connection)),
      link_(options_.backoff, clock, entropy),
      late_(clock),
      watch_(options_.name, std::move(alarm)) {}

Status TableStore::Connect() {
  away_ = false;
  if (connection_->is_open()) return {};
  if (Status may = link_.MayConnect(); !may.ok()) {
    away_ = lost_away_;
    return may;
  }
  Status opened = connection_->Open();
  return opened.ok() ? opened : Lost(std::move(opened));
}

Status TableStore::Lost(Status why) {
  away_ = lost_away_ = connection_->away();
  return link_.Lost(std::move(why));
}

// Returns the right that a statement requires, because PostgreSQL's error does not name it.
std::string_view TableStore::RightFor(const std::string& sql) const {
  if (sql == table_.read()) return "SELECT";
  return sql == table_.insert() ? "INSERT" : "UPDATE";
}

Result<SqlConnection::Answer> TableStore::Execute(
    const std::string& sql, const std::vector<SqlConnection::Parameter>& parameters) {
  Result<SqlConnection::Answer> answer = connection_->Execute(sql, parameters);
  if (answer.ok()) return answer;
  const bool mysql = table_.dialect() == SqlDialect::kMysql;
  std::string remedy;
  if (answer.code() == Code::kNotFound && table_.form() == TableForm::kFirn) {
    remedy =
        Cat("; ", mysql ? "firn_tag.sql" : "firn_tag_postgres.sql", " of the package creates it");
  } else if (answer.code() == Code::kDenied) {
    remedy = Cat("; grant the user ", RightFor(sql), " on ", table_.name());
  } else if (answer.code() == Code::kUnavailable && connection_->is_open()) {
    remedy = "; it was rolled back. Another session may hold a lock on " + table_.name();
  }
  Status failure(answer.code(), answer.status().message() + remedy);
  return connection_->is_open() ? failure : Lost(std::move(failure));
}

void TableStore::Learn(const TagDefinition& tag, const Status& end, BootMs began) {
  const bool given_up = end.code() == Code::kUnavailable && connection_->is_open();
  if (given_up) return late_.GaveUp(tag.name, end, began);
  late_.Answered(tag.name);
  if (end.ok()) link_.Worked();
}

Status TableStore::Check(const TagDefinition& tag) {
  constexpr size_t kTinyidNameMax = 63;  // of biz_type
  if (table_.form() == TableForm::kTinyid && tag.name.size() > kTinyidNameMax) {
    return Invalid("a name of more than 63 bytes does not fit Tinyid's table");
  }
  FIRN_TRY(Connect());
  FIRN_ASSIGN(const auto row, ReadRow(tag));
  const bool to_be_made = table_.form() == TableForm::kFirn && tag.high == 0;
  if (row && !row->cluster && table_.form() == TableForm::kFirn) {
    LogWarning("store_unmarked").With("tag", tag.name).With("store", options_.name)
        << "tag " << tag.name << ": a second cluster that uses its row in store " << options_.name
        << " would not be detected, because the table has no column `cluster`: " << AddColumn();
  }
  return row || to_be_made ? Status() : NoRow(tag, tag.NextBegin());
}

std::string TableStore::AddColumn() const {
  return Cat("ALTER TABLE ", table_.name(), " ADD cluster VARCHAR(64) NOT NULL DEFAULT ''");
}

Status TableStore::NoRow(const TagDefinition& tag, int64_t at_least) const {
  return NotFound(Cat("there is no row of this tag in ", table_.name(), "; create it: ",
                      table_.InsertText(tag.name, table_.RowBefore(at_least), tag.step)));
}

Result<std::optional<RangeTable::State>> TableStore::ReadRow(const TagDefinition& tag) {
  FIRN_ASSIGN(const auto answer, Execute(table_.read(), {tag.name}));
  if (answer.rows.empty()) return std::optional<RangeTable::State>();
  if (answer.rows.size() > 1) return Corrupt("there are several rows of this tag");
  const Result<RangeTable::State> row = table_.StateOf(answer.rows.front());
  if (!row.ok()) return row.status().WithContext("its row in " + table_.name());
  return std::optional(*row);
}

Result<RangeTable::State> TableStore::ReadOrMakeRow(const TagDefinition& tag,
                                                    const Wanted& wanted) {
  FIRN_ASSIGN(std::optional<RangeTable::State> row, ReadRow(tag));
  const bool has_ledger = wanted.at_least > tag.start.value_or(1);
  if (!row && table_.form() == TableForm::kFirn && !has_ledger) {
    FIRN_TRY(Execute(table_.insert(), {tag.name, wanted.row_least, wanted.size}).status());
    FIRN_ASSIGN(row, ReadRow(tag));
  }
  return row ? Result<RangeTable::State>(*row) : NoRow(tag, wanted.at_least);
}

Result<RowUse> TableStore::UseOf(const TagDefinition& tag, const RangeTable::State& row) const {
  const bool stands_in = tag.when_store_is_away == StoreAway::kLedger;
  if (!row.cluster) {
    if (!stands_in) return RowUse::kUnmarked;
    return Invalid("when_store_is_away = ledger requires the column `cluster`: " + AddColumn());
  }
  if (!row.cluster->empty() && *row.cluster != word_.cluster) {
    return OfAnotherCluster("its row in " + table_.name(), *row.cluster, "cluster");
  }
  if (stands_in && word_.cluster.empty()) return Internal("the cluster's uuid is not known yet");
  return RowUse::kOwned;
}

Result<Range> TableStore::MoveRow(const TagDefinition& tag, const Wanted& wanted, RowUse use) {
  const auto parameters = RangeTable::AdvanceParameters({.use = use,
                                                         .least = wanted.row_least,
                                                         .size = wanted.size,
                                                         .tag = tag.name,
                                                         .ceiling = wanted.ceiling,
                                                         .cluster = word_.cluster});
  FIRN_ASSIGN(const auto answer, Execute(table_.advance(use), parameters));
  if (answer.affected == 0) return Unavailable("the row changed after it was read; try again");
  if (answer.affected > 1) return Corrupt("there are several rows of this tag");
  return table_.RangeAfter(answer, wanted.size, wanted.at_least);
}

Result<Range> TableStore::Advance(const TagDefinition& tag, int64_t at_least, int64_t size) {
  away_ = false;
  if (at_least < 0 || size < 1)
    return Invalid(Cat("a range of ", size, " numbers from ", at_least, " is invalid"));
  FIRN_TRY(late_.MayAsk(tag.name));
  FIRN_TRY(Connect());
  const BootMs began = clock_.Boot();
  Result<Range> range = AdvanceRow(tag, at_least, size);
  Learn(tag, range.ok() ? Status() : range.status(), began);
  return range;
}

Result<Range> TableStore::AdvanceRow(const TagDefinition& tag, int64_t at_least, int64_t size) {
  const int64_t room = kRangeEnd - at_least;
  if (room == 0) return Exhausted("63 bits are used up");
  const Wanted most(table_, at_least, std::min(size, room));
  FIRN_ASSIGN(const RangeTable::State state, ReadOrMakeRow(tag, most));
  FIRN_ASSIGN(const RowUse use, UseOf(tag, state));
  const int64_t row = state.number;

  const int64_t left = kRangeEnd - table_.BeginAfter(std::max(row, most.row_least));
  if (left <= 0) return Exhausted("63 bits are used up");
  const Wanted wanted(table_, at_least, std::min(size, left));
  if (row > wanted.ceiling) {
    return Corrupt(Cat("max_id is ", row, ", far beyond the ", at_least,
                       " that the ledger knows; if that is intended, raise the tag's start to it"));
  }
  if (at_least > tag.start.value_or(1)) {
    // If `picked` is set, the ledger picked the numbers above it while the database was
    // unreachable, so the row must have reached only `picked`.
    watch_.Judge(tag.name, row, table_.RowBefore(word_.picked.value_or(at_least)),
                 word_.picked.has_value());
  }
  FIRN_ASSIGN(const Range range, MoveRow(tag, wanted, use));
  watch_.Moved(tag.name, table_.RowBefore(range.end));
  return range;
}

}  // namespace firn
