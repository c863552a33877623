#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/database/sql_server.h"

namespace firn {

// A real MariaDB (package mariadb-server).
class MariaDb final : public SqlServer {
 public:
  // Returns a serving database, or why it does not serve. The first one of a program takes a second
  // longer: it creates the files that the others copy.
  static Result<std::unique_ptr<MariaDb>> Start();

  Result<std::vector<Row>> Query(const std::string& sql) override;

  Status RequireTls(const std::string& cert, const std::string& key,
                    const std::string& client_ca = {}) override;

  Result<std::unique_ptr<SqlServer>> StartReplica() override;
  Status AwaitCaughtUp(SqlServer& primary) override;
  Status StopFollowing() override { return Run("STOP SLAVE"); }
  Status Promote() override;

  Status Restart() override;

 private:
  MariaDb() = default;

  Status AwaitReady();
  std::vector<std::string> Command() const;

  std::vector<std::string> tls_flags_{"--skip-ssl"};  // a later MariaDB makes a certificate itself
};

}  // namespace firn
