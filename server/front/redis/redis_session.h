#pragma once

#include <cstdint>
#include <string>

#include "server/front/net/protocol.h"

namespace firn::front {

// What is kept of a connection that has said HELLO, AUTH or CLIENT. One without has the defaults.
struct RedisSession final : DoorSession {
  int64_t id = 0;        // of CLIENT ID
  int version = 2;       // of the protocol: 2 or 3
  std::string name{};    // of CLIENT SETNAME
  uint64_t edition = 0;  // of the logins, when the user was found there last
  int failed_logins = 0;
};

}  // namespace firn::front
