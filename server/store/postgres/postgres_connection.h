#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/secret_file.h"
#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/clock.h"
#include "server/store/table/database_place.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to a PostgreSQL server. A statement counts only once its transaction has ended,
// because the server returns changed rows before it commits. No other server code uses the vendor's
// library. Blocking functions of the library are avoided, so that every wait has a time limit.
class PostgresConnection final : public SqlConnection {
 public:
  // `clock` must outlive this.
  PostgresConnection(DatabasePlace place, const Clock& clock);
  ~PostgresConnection() override;

  bool is_open() const override { return client_ != nullptr; }
  Status Open() override;
  void Close() override;
  bool away() const override { return away_; }
  Result<Answer> Execute(const std::string& sql, const std::vector<Parameter>& parameters) override;

 private:
  struct Client;  // the library's handle
  struct Reply;

  // Connects, and waits until the server accepts statements.
  Status Greet(const Credentials& credentials);
  Status FailedToConnect(const std::string& why);
  // Overrides defaults of the server; refuses a replica.
  Status SetUpSession();
  Status Send(const std::string& sql, const std::vector<Parameter>& parameters, BootMs until);
  // Returns all replies to one statement, until the server is ready for the next.
  Result<std::vector<Reply>> Receive(BootMs until);
  Status AwaitReply(BootMs until);
  // Waits until the socket is readable or writable. Returns false at `until`.
  bool Await(short events, BootMs until) const;
  Status FailUnknown(const std::string& why);
  Status Fail(const Reply& reply);

  const DatabasePlace place_;
  const Clock& clock_;
  std::unique_ptr<Client> client_;
  bool away_ = false;
};

}  // namespace firn
