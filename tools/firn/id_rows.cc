#include "tools/firn/id_rows.h"

#include <algorithm>
#include <memory>

#include <mariadb/mysql.h>
#include <mariadb/mysqld_error.h>

#include "common/base/cat.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr unsigned int kSeconds = 10;  // timeout of connecting, and of each read

using Connection = std::unique_ptr<MYSQL, decltype(&mysql_close)>;
using Rows = std::unique_ptr<MYSQL_RES, decltype(&mysql_free_result)>;

bool IsTableName(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), plain);
}

Status Failure(MYSQL* client) {
  const unsigned int number = mysql_errno(client);
  const bool denied = number == ER_ACCESS_DENIED_ERROR || number == ER_DBACCESS_DENIED_ERROR ||
                      number == ER_TABLEACCESS_DENIED_ERROR;
  const bool missing = number == ER_NO_SUCH_TABLE || number == ER_BAD_DB_ERROR;
  const bool other_table = number == ER_BAD_FIELD_ERROR;
  const std::string what = mysql_error(client);
  if (denied) return Denied(what);
  if (missing) return NotFound(what);
  return other_table ? Invalid(what) : Unavailable(what);
}

Result<Connection> Connect(const IdDatabase& place, const Credentials& credentials) {
  Connection client(mysql_init(nullptr), mysql_close);
  if (client == nullptr) return Internal("out of memory");
  for (const auto option : {MYSQL_OPT_CONNECT_TIMEOUT, MYSQL_OPT_READ_TIMEOUT}) {
    mysql_options(client.get(), option, &kSeconds);
  }
  mysql_options(client.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4");
  if (mysql_real_connect(client.get(), place.address.host.c_str(), credentials.user.c_str(),
                         credentials.password.c_str(), place.database.c_str(), place.address.port,
                         nullptr, 0) == nullptr) {
    return Failure(client.get());
  }
  return client;
}

std::string FieldOf(MYSQL_ROW row, const unsigned long* sizes, size_t i) {
  return row[i] != nullptr ? std::string(row[i], sizes[i]) : std::string("NULL");
}

}  // namespace

Result<IdDatabase> IdDatabase::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == text.npos || slash + 1 == text.size()) {
    return Invalid(Quoted(text) + " is not host:port/database");
  }
  FIRN_ASSIGN(Endpoint address, Endpoint::Parse(text.substr(0, slash)));
  return IdDatabase{std::move(address), std::string(text.substr(slash + 1))};
}

Result<std::vector<IdRow>> ReadIdRows(const IdDatabase& place, const Credentials& credentials,
                                      IdTable form, const std::string& table) {
  if (!IsTableName(table)) return Invalid(Quoted(table) + " is not a table name");
  FIRN_ASSIGN(const Connection client, Connect(place, credentials));
  const bool tinyid = form == IdTable::kTinyid;
  const std::string sql =
      std::string("SELECT ") +
      (tinyid ? "biz_type, max_id, step, delta, remainder" : "biz_tag, max_id, step, 1, 0") +
      " FROM `" + table + "` ORDER BY 1";
  if (mysql_real_query(client.get(), sql.data(), sql.size()) != 0) return Failure(client.get());
  const Rows answer(mysql_store_result(client.get()), mysql_free_result);
  if (answer == nullptr) return Failure(client.get());
  std::vector<IdRow> rows;
  while (const MYSQL_ROW row = mysql_fetch_row(answer.get())) {
    if (rows.size() == kIdRowsMax) {
      return Invalid(Cat("table ", Quoted(table), " has more than ", kIdRowsMax, " rows"));
    }
    const unsigned long* const sizes = mysql_fetch_lengths(answer.get());
    rows.push_back({FieldOf(row, sizes, 0), FieldOf(row, sizes, 1), FieldOf(row, sizes, 2),
                    FieldOf(row, sizes, 3), FieldOf(row, sizes, 4)});
  }
  return rows;
}

}  // namespace firn
