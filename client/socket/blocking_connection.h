#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/socket/blocking_socket.h"
#include "client/wire/ask.h"
#include "client/wire/id_check.h"
#include "client/wire/outcome.h"
#include "client/wire/wire_codec.h"

namespace firn::client {

// One connection to a server for one call at a time. Used by one thread at a time.
//
// Sharp edge: after an Exchange that ended in neither an answer nor a refusal an answer may still
// be on its way: the connection must be destroyed (`usable()` is false).
class BlockingConnection {
 public:
  explicit BlockingConnection(std::unique_ptr<BlockingSocket> socket)
      : socket_(std::move(socket)) {}

  // Asks, and waits for the answer until `until`.
  Outcome Exchange(const Ask& ask, Micros until, Reply& reply);

  bool usable() const { return usable_; }

  IdCheck ids{};         // of the server at the other end; its owner's
  Micros idle_since{0};  // the pool's

 private:
  static constexpr size_t kReadBytes = 16 * 1024;

  // The length of the whole frame that then stands at the beginning of `in_`.
  Tried<size_t> ReceiveFrame(Micros until);

  const std::unique_ptr<BlockingSocket> socket_;
  WireCodec codec_;
  std::string out_, in_;
  int32_t sequence_ = 0;
  bool usable_ = true;
};

}  // namespace firn::client
