#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to the one of several servers that accepts writes. Open tries the servers in order,
// beginning with the last one used, until one accepts the connection and does not refuse writes.
// Which server is the primary is decided outside of Firn; if two accept writes at once, the tag's
// ledger prevents duplicates.
class FailoverConnection final : public SqlConnection {
 public:
  // At least one; each has its own address.
  explicit FailoverConnection(std::vector<std::unique_ptr<SqlConnection>> servers)
      : servers_(std::move(servers)) {}

  bool is_open() const override { return server().is_open(); }
  // Waits for up to the time limit of each server. The error lists all of them.
  Status Open() override;
  void Close() override { server().Close(); }
  // After a failed Open: whether any server was unreachable. The others may be replicas.
  bool away() const override { return away_ || server().away(); }
  Result<Answer> Execute(const std::string& sql, const std::vector<Parameter>& of) override {
    away_ = false;
    return server().Execute(sql, of);
  }

 private:
  SqlConnection& server() const { return *servers_[at_]; }

  const std::vector<std::unique_ptr<SqlConnection>> servers_;
  size_t at_ = 0;
  bool away_ = false;
};

}  // namespace firn
