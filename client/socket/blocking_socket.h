#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "client/wire/outcome.h"
#include "common/base/fork.h"
#include "common/net/address.h"
#include "common/time/clock.h"
#include "common/time/micros.h"

namespace firn::client {

// A TCP connection whose calls wait in the kernel, each until a moment of its own. What Asio has
// none of: its blocking calls know no time limit. Used by one thread at a time.
//
// Sharp edge: after anything but success it is of no more use than to be destroyed.
class BlockingSocket {
 public:
  struct Setting {
    const Clock& clock;
    CloseOnFork& fds;
  };

  static Tried<std::unique_ptr<BlockingSocket>> Connect(const Address& address, Micros until,
                                                        const Setting& setting);
  ~BlockingSocket();
  BlockingSocket(const BlockingSocket&) = delete;
  BlockingSocket& operator=(const BlockingSocket&) = delete;

  // All of `bytes`. Outcomes are kAnswered, kClosed and kTimeout, here and below.
  Outcome Send(std::string_view bytes, Micros until);

  // What there is into `into`; how many bytes, at least one.
  Tried<size_t> Receive(char* into, size_t size, Micros until);

 private:
  BlockingSocket(int fd, const Setting& setting) : fd_(fd), setting_(setting) {}

  // Lets the kernel wake the next send (or receive) at `until`. False when that has passed.
  bool Limit(int option, Micros until, int64_t& set_ms);

  const int fd_;  // held by setting_.fds
  const Setting setting_;
  int64_t send_limit_ms_ = 0, receive_limit_ms_ = 0;  // as the kernel has them; 0: none
};

}  // namespace firn::client
