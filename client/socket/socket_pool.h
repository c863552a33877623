#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>

#include "client/socket/blocking_connection.h"
#include "common/time/clock.h"
#include "common/time/micros.h"
#include "common/time/thread_index.h"

namespace firn::client {

// The blocking connections to one server: at most so many. An idle one waits in the place of the
// thread that used it last, which finds it there again without a lock; a thread that finds its
// place empty looks into the others' before it opens one. So there are as many as calls at a time.
// Thread-safe.
class SocketPool {
 public:
  struct Options {
    size_t connections_max = 64;
  };
  static constexpr Micros kIdleMax{60'000'000};  // the server gives up after twice as long

  explicit SocketPool(const Options& options) : options_(options) {}
  ~SocketPool();
  SocketPool(const SocketPool&) = delete;
  SocketPool& operator=(const SocketPool&) = delete;

  // Room for one connection, until it is given back with Give: an idle connection, or null when
  // the caller shall open one. Nothing when there was none by `until`.
  using Room = std::unique_ptr<BlockingConnection>;
  std::optional<Room> Take(Micros until, const Clock& clock);

  // Gives the room back; `connection` is kept when it is usable. May be null.
  void Give(Room connection);

  // Closes idle connections: all of them, or those that were idle for kIdleMax.
  void CloseIdle() { CloseIdleSince(Micros::max()); }
  void CloseOld(Micros now) { CloseIdleSince(now - kIdleMax); }

 private:
  using Place = std::atomic<BlockingConnection*>;

  std::optional<Room> TryTake();
  // Leaves the connection in this place or the next free one. False: there is none, it is still the
  // caller's.
  bool Keep(size_t at, Room& connection);
  void CloseIdleSince(Micros latest);
  void WakeOne();

  const Options options_;
  std::array<Place, kThreadIndexMax> idle_{};  // each is owned by whoever exchanges it for null
  std::atomic<size_t> rooms_ = 0;              // taken, or of an idle connection
  std::atomic<int> waiting_ = 0;               // threads that want room
  std::mutex mutex_;                           // of those that wait, and those that wake them
  std::condition_variable room_;
};

}  // namespace firn::client
