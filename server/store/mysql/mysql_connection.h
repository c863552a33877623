#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/store/table/database_place.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to a MySQL or MariaDB server, with its prepared statements. Time limits are rounded
// up to whole seconds.
class MysqlConnection final : public SqlConnection {
 public:
  static constexpr size_t kFieldBytesMax = 1024;

  explicit MysqlConnection(DatabasePlace place);
  ~MysqlConnection() override;

  bool is_open() const override { return client_ != nullptr; }
  Status Open() override;
  void Close() override;
  bool away() const override { return away_; }
  Result<Answer> Execute(const std::string& sql, const std::vector<Parameter>& parameters) override;

 private:
  struct Client;     // the library's handles
  struct Statement;  // a prepared one

  Status RefuseAReplica();
  Status FailedToConnect(unsigned int number, const std::string& text);
  Result<Statement*> Prepare(const std::string& sql);
  Status Fail(unsigned int number, const std::string& text);

  const DatabasePlace place_;
  std::unique_ptr<Client> client_;
  bool away_ = false;
  std::map<std::string, std::unique_ptr<Statement>> statements_;
};

}  // namespace firn
