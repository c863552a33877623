#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to that server of several which takes writes. Open tries the servers in order,
// beginning with the one that was connected to last, until one accepts the connection and does not
// refuse writes. Which of them is the primary is decided elsewhere; if two servers take writes at
// once, the tag's ledger keeps numbers from repeating.
class FailoverConnection final : public SqlConnection {
 public:
  // At least one; each has an address of its own.
  explicit FailoverConnection(std::vector<std::unique_ptr<SqlConnection>> servers)
      : servers_(std::move(servers)) {}

  bool is_open() const override { return server().is_open(); }
  // Waits up to the time limit of each server. The failure lists all of them.
  Status Open() override;
  void Close() override { server().Close(); }
  // Of an Open that failed: whether any server was away. The others are then replicas.
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
