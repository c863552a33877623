#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/database/sql_server.h"

namespace firn {

// A real PostgreSQL (package postgresql), which serves nobody as root: there it runs as the
// package's user.
class Postgres final : public SqlServer {
 public:
  // Serving, or the reason why not. The first one of a program takes seconds more: it makes the
  // files that the others copy.
  static Result<std::unique_ptr<Postgres>> Start();
  ~Postgres() override;

  Result<std::vector<Row>> Query(const std::string& sql) override;

  Result<std::unique_ptr<SqlServer>> StartReplica() override;
  Status AwaitCaughtUp(SqlServer& primary) override;
  Status StopFollowing() override;
  Status Promote() override;

  Status Restart() override;

 private:
  Postgres() = default;

  // `fill` makes the files.
  template <typename Fill>
  static Result<std::unique_ptr<Postgres>> StartOn(Fill fill);

  void Launch();
};

}  // namespace firn
