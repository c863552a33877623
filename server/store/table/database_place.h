#pragma once

#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"
#include "server/store/store_tls.h"

namespace firn {

// The address and settings of an SQL database server.
struct DatabasePlace {
  Endpoint address{};
  std::string database{};
  std::string credentials_file{};  // one line user:password; see common/base/secret_file.h
  StoreTls tls{};
  Milliseconds time_limit{2000};  // of connecting, and of each statement

  // The server ends a statement at the time limit, and a wait for a lock at half of it. So a
  // statement that the client has given up cannot take effect later. The client waits longer than
  // the server by kGrace.
  static constexpr Milliseconds kGrace{1000};
};

// Returns the error for a server that refuses to write, with the remedy.
Status TakesNoWrites(const DatabasePlace& place, const std::string& why);

}  // namespace firn
