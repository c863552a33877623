#pragma once

#include <string>

#include "server/store/table/range_table.h"

namespace firn {

// Tables of ranges in test databases, in the forms of Firn, Leaf and Tinyid.

inline std::string CreateTableSql(TableForm form, const std::string& table,
                                  SqlDialect dialect = SqlDialect::kMysql) {
  const bool mysql = dialect == SqlDialect::kMysql;
  const std::string engine = mysql ? " ENGINE = InnoDB" : "";
  switch (form) {
    case TableForm::kFirn:
      return FirnTableSql(dialect, table);
    case TableForm::kLeaf:
      return "CREATE TABLE " + table +
             " (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1,"
             " step INT NOT NULL, description VARCHAR(256) DEFAULT NULL,"
             " update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP" +
             (mysql ? " ON UPDATE CURRENT_TIMESTAMP" : "") + ", PRIMARY KEY (biz_tag))" + engine;
    case TableForm::kTinyid:
      break;
  }
  return "CREATE TABLE " + table + " (id " +
         (mysql ? "BIGINT UNSIGNED NOT NULL AUTO_INCREMENT" : "BIGSERIAL") +
         ", biz_type VARCHAR(63) NOT NULL DEFAULT '',"
         " begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0,"
         " step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0,"
         " create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',"
         " update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',"
         " version BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (id), UNIQUE (biz_type))" +
         engine;
}

// A row after which a range begins at `begin`. Firn creates its own rows.
inline std::string InsertRowSql(TableForm form, const std::string& table, const std::string& tag,
                                int64_t begin, SqlDialect dialect = SqlDialect::kMysql) {
  std::string name = "'";
  for (const char c : tag) {
    if (c == '\'') name += c;
    if (c == '\\' && dialect == SqlDialect::kMysql) name += c;
    name += c;
  }
  name += "'";
  if (form == TableForm::kTinyid) {
    return "INSERT INTO " + table + " (biz_type, begin_id, max_id, step) VALUES (" + name +
           ", 0, " + std::to_string(begin - 1) + ", 100)";
  }
  return "INSERT INTO " + table + " (biz_tag, max_id, step) VALUES (" + name + ", " +
         std::to_string(begin) + ", 100)";
}

}  // namespace firn
