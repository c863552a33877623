#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "server/front/net/protocol.h"

namespace firn::front {

// The requests between MULTI and EXEC.
struct RedisTransaction {
  static constexpr size_t kBytesMax = 1024 * 1024;

  std::string requests{};  // as they were sent
  size_t count = 0;
  bool aborted = false;  // one was refused: EXEC runs none of them
};

// What is kept of a connection that has said HELLO, AUTH, CLIENT or MULTI. One without has the
// defaults.
struct RedisSession final : DoorSession {
  size_t memory() const override { return transaction ? transaction->requests.capacity() : 0; }

  int64_t id = 0;        // of CLIENT ID
  int version = 2;       // of the protocol: 2 or 3
  std::string name{};    // of CLIENT SETNAME
  uint64_t edition = 0;  // of the logins, when the user was found there last
  int failed_logins = 0;
  std::optional<RedisTransaction> transaction{};  // since MULTI
};

}  // namespace firn::front
