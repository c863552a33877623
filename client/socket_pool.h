#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "client/blocking_connection.h"
#include "client/micros.h"
#include "common/clock.h"

namespace firn::client {

// The blocking connections to one server: at most so many at a time, idle ones used again, the
// last one first, so that few stay open. Thread-safe.
class SocketPool {
 public:
  struct Options {
    size_t connections_max = 64;
  };
  static constexpr Micros kIdleMax{60'000'000};  // the server gives up after twice as long

  explicit SocketPool(const Options& options) : options_(options) {}

  // Room for one connection, until it is given back with Give: an idle connection, or null when
  // the caller shall open one. False when there was none by `until`.
  bool Take(Micros until, const Clock& clock, std::unique_ptr<BlockingConnection>& connection);

  // Gives the room back; `connection` is kept when it is usable. May be null.
  void Give(std::unique_ptr<BlockingConnection> connection, Micros now);

  // Closes idle connections: all of them, or those that were idle for kIdleMax.
  void CloseIdle();
  void CloseOld(Micros now);

 private:
  const Options options_;
  std::mutex mutex_;
  std::condition_variable room_;
  size_t taken_ = 0;                                       // under mutex_
  std::vector<std::unique_ptr<BlockingConnection>> idle_;  // under mutex_; longest idle first
};

}  // namespace firn::client
