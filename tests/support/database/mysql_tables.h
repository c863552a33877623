#pragma once

#include <string>

#include "server/store/mysql/mysql_store.h"
#include "tests/support/database/mariadb.h"

namespace firn {

// Tables of ranges in a MariaDB of tests, as Firn, Leaf and Tinyid have them.

inline std::string CreateTableSql(MysqlForm form, const std::string& table) {
  switch (form) {
    case MysqlForm::kFirn: {
      std::string sql(kMysqlFirnTable);
      return sql.replace(sql.find("%s"), 2, table);
    }
    case MysqlForm::kLeaf:
      return "CREATE TABLE " + table +
             " (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1,"
             " step INT NOT NULL, description VARCHAR(256) DEFAULT NULL,"
             " update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE"
             " CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE = InnoDB";
    case MysqlForm::kTinyid:
      break;
  }
  return "CREATE TABLE " + table +
         " (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, biz_type VARCHAR(63) NOT NULL DEFAULT '',"
         " begin_id BIGINT NOT NULL DEFAULT 0, max_id BIGINT NOT NULL DEFAULT 0,"
         " step INT DEFAULT 0, delta INT NOT NULL DEFAULT 1, remainder INT NOT NULL DEFAULT 0,"
         " create_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',"
         " update_time TIMESTAMP NOT NULL DEFAULT '2010-01-01 00:00:00',"
         " version BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (id), UNIQUE KEY (biz_type))"
         " ENGINE = InnoDB";
}

// A row from which `begin` follows. Firn makes its own rows.
inline std::string InsertRowSql(MysqlForm form, const std::string& table, const std::string& tag,
                                int64_t begin) {
  std::string name = "'";
  for (const char c : tag) name += (c == '\'' || c == '\\') ? std::string{'\\', c} : std::string{c};
  name += "'";
  if (form == MysqlForm::kTinyid) {
    return "INSERT INTO " + table + " (biz_type, begin_id, max_id, step) VALUES (" + name +
           ", 0, " + std::to_string(begin - 1) + ", 100)";
  }
  return "INSERT INTO " + table + " (biz_tag, max_id, step) VALUES (" + name + ", " +
         std::to_string(begin) + ", 100)";
}

}  // namespace firn
