#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/database/sql_server.h"

namespace firn {

// A real PostgreSQL (package postgresql), which refuses to run as root: then it runs as the
// package's user.
class Postgres final : public SqlServer {
 public:
  // Returns a serving database, or why it does not serve. The first one of a program takes seconds
  // longer: it creates the files that the others copy.
  static Result<std::unique_ptr<Postgres>> Start();
  ~Postgres() override;

  Result<std::vector<Row>> Query(const std::string& sql) override;

  Status RequireTls(const std::string& cert, const std::string& key,
                    const std::string& client_ca = {}) override;

  Result<std::unique_ptr<SqlServer>> StartReplica() override;
  Status AwaitCaughtUp(SqlServer& primary) override;
  Status StopFollowing() override;
  Status Promote() override;

  Status Restart() override;

 private:
  Postgres() = default;

  // `fill` creates the files.
  template <typename Fill>
  static Result<std::unique_ptr<Postgres>> StartOn(Fill fill);

  void Launch();

  int tls_changes_ = 0;
};

}  // namespace firn
