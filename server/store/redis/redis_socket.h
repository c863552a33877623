#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/net/blocking_socket.h"
#include "common/net/endpoint.h"
#include "common/tls/tls_pump.h"
#include "server/store/store_tls.h"

namespace firn {

// A blocking connection to one address, with or without TLS. Each wait ends at the time limit.
// Owned by one thread.
class RedisSocket {
 public:
  // kUnavailable: unreachable; kDenied: TLS failed; any other error names a file.
  static Result<std::unique_ptr<RedisSocket>> Connect(const Endpoint& address, const StoreTls& tls,
                                                      Milliseconds time_limit);
  RedisSocket(const RedisSocket&) = delete;
  RedisSocket& operator=(const RedisSocket&) = delete;

  Status Send(std::string_view bytes);
  // Returns at least one byte, at most `size`.
  Result<size_t> Receive(char* into, size_t size);

 private:
  RedisSocket(BlockingSocket socket, std::string address, StoreTls settings)
      : socket_(std::move(socket)), address_(std::move(address)), settings_(std::move(settings)) {}

  Status Agree(const std::string& name);
  Status Closed(const Status& why) const;
  Status TlsFailed() const { return settings_.Failed(address_, tls_->why()); }

  BlockingSocket socket_;
  const std::string address_;
  const StoreTls settings_;
  std::unique_ptr<TlsPump> tls_;  // null: no TLS
  bool worked_ = false;           // whether anything was received over TLS
};

}  // namespace firn
