#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"

namespace firn {

// A blocking TCP connection, for code that may wait. Every wait ends at the time limit, except the
// lookup of a name. Owned by one thread.
class BlockingSocket {
 public:
  // Tries the addresses of the host one after another. kUnavailable names the endpoint.
  static Result<BlockingSocket> Connect(const Endpoint& to, Milliseconds time_limit);
  ~BlockingSocket();
  BlockingSocket(BlockingSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  BlockingSocket(const BlockingSocket&) = delete;
  BlockingSocket& operator=(const BlockingSocket&) = delete;

  // Sends all of it. kUnavailable: only a part may have been sent.
  Status Send(std::string_view bytes);
  // Returns at least one byte, at most `size`. kUnavailable, also if the peer has closed.
  Result<size_t> Receive(char* into, size_t size);

 private:
  explicit BlockingSocket(int socket) : socket_(socket) {}

  int socket_;  // -1: moved from
};

}  // namespace firn
