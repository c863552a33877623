#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "client/socket/blocking_socket.h"
#include "client/wire/ask.h"
#include "client/wire/conversation.h"
#include "client/wire/outcome.h"

namespace firn::client {

// One connection to a server for one call at a time. Used by one thread at a time.
//
// Sharp edge: after an Exchange that ended in neither an answer nor a refusal an answer may still
// be on its way: the connection must be destroyed (`usable()` is false).
class BlockingConnection {
 public:
  BlockingConnection(std::unique_ptr<BlockingSocket> socket, const Clock& clock)
      : socket_(std::move(socket)), clock_(clock) {}

  // Asks, and waits for the answer until `until`. Its ids are looked at as soon as the server is
  // known.
  Outcome Exchange(const Ask& ask, Micros until, Reply& reply);

  // What the server at the other end said of itself in the Exchange that has just ended.
  void Know(const ServerFacts& facts) { talk_.Know(facts, idle_since_); }

  bool usable() const { return usable_; }
  Micros idle_since() const { return idle_since_; }

 private:
  static constexpr size_t kReadBytes = 16 * 1024;

  // The length of the whole frame that then stands at the beginning of `in_`.
  Tried<size_t> ReceiveFrame(Micros until);

  const std::unique_ptr<BlockingSocket> socket_;
  const Clock& clock_;
  Conversation talk_;
  std::string out_, in_;
  Micros idle_since_{0};  // when the last Exchange ended
  bool usable_ = true;
};

}  // namespace firn::client
