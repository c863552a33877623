#pragma once

#include <cstddef>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/endpoint.h"

namespace firn {

// A blocking TCP connection, for code that may wait. Every wait has a time limit, except a name
// lookup. Owned by one thread.
class BlockingSocket {
 public:
  // Tries the host's addresses in order. On failure, returns kUnavailable with the endpoint.
  static Result<BlockingSocket> Connect(const Endpoint& to, Milliseconds time_limit);
  ~BlockingSocket();
  BlockingSocket(BlockingSocket&& other) noexcept : socket_(std::exchange(other.socket_, -1)) {}
  BlockingSocket(const BlockingSocket&) = delete;
  BlockingSocket& operator=(const BlockingSocket&) = delete;

  // Sends all bytes. kUnavailable: perhaps only a part was sent.
  Status Send(std::string_view bytes);
  // Receives 1 to `size` bytes. kUnavailable on failure, and if the peer has closed the connection.
  Result<size_t> Receive(char* into, size_t size);

 private:
  explicit BlockingSocket(int socket) : socket_(socket) {}

  int socket_;  // -1: moved from
};

}  // namespace firn
