#pragma once

#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"
#include "server/store/store_tls.h"

namespace firn {

// How to reach a database server that speaks SQL.
struct DatabasePlace {
  Endpoint address{};
  std::string database{};
  std::string credentials_file{};  // one line user:password; see common/base/secret_file.h
  StoreTls tls{};
  Milliseconds time_limit{2000};  // of connecting, and of each statement

  // The server ends a statement at the time limit, and the wait for a lock at half of it, so that a
  // statement that the client has given up does not run later. The client waits this much longer
  // for the server's answer.
  static constexpr Milliseconds kGrace{1000};
};

struct DatabaseCredentials {
  std::string user;
  std::string password;
};
// Reads the file. What it contains is never logged, and never part of a failure.
Result<DatabaseCredentials> ReadCredentials(const DatabasePlace& place);

// Returns the failure for a server that refuses to write, with the remedy.
Status TakesNoWrites(const DatabasePlace& place, const std::string& why);

}  // namespace firn
