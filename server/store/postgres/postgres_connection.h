#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/clock.h"
#include "server/store/table/database_place.h"
#include "server/store/table/sql_connection.h"

namespace firn {

// A connection to a PostgreSQL server. A statement counts once its transaction has ended: the
// server sends what it changed before it commits. The only code that knows the vendor's library,
// which never waits here by itself, so that every wait has its limit.
class PostgresConnection final : public SqlConnection {
 public:
  // `clock` must outlive it.
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

  // Connects, until the server accepts statements.
  Status Greet(const DatabaseCredentials& credentials);
  Status FailedToConnect(const std::string& why);
  // Sets what must not depend on the server's defaults; refuses a replica.
  Status SetUpSession();
  Status Send(const std::string& sql, const std::vector<Parameter>& parameters, BootMs until);
  // Returns everything that the server answers to one statement, until it is ready for the next.
  Result<std::vector<Reply>> Receive(BootMs until);
  Status AwaitReply(BootMs until);
  // Waits until the socket can be read, or written; false if `until` comes first.
  bool Await(short events, BootMs until) const;
  Status FailUnknown(const std::string& why);
  Status Fail(const Reply& reply);

  const DatabasePlace place_;
  const Clock& clock_;
  std::unique_ptr<Client> client_;
  bool away_ = false;
};

}  // namespace firn
