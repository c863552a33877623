#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to the one of several servers that accepts writes. Open tries the servers in order,
// beginning with the last one used, until one accepts the connection and does not refuse writes.
// The primary is chosen outside of Firn. If two servers accept writes at once, the tag's ledger
// prevents duplicates.
class FailoverConnection final : public SqlConnection {
 public:
  // There must be at least one server; each has its own address.
  explicit FailoverConnection(std::vector<std::unique_ptr<SqlConnection>> servers)
      : servers_(std::move(servers)) {}

  bool is_open() const override { return server().is_open(); }
  // Waits for each server up to its time limit. The error lists all servers.
  Status Open() override;
  void Close() override { server().Close(); }
  // After a failed Open: returns whether any server was unreachable, because the others may be
  // replicas.
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
