#include "client/socket_pool.h"

#include <algorithm>
#include <utility>

namespace firn::client {

bool SocketPool::Take(Micros until, const Clock& clock,
                      std::unique_ptr<BlockingConnection>& connection) {
  std::unique_lock lock(mutex_);
  while (taken_ >= options_.connections_max) {
    const Micros left = until - clock.BootMicros();
    if (left <= Micros(0)) return false;
    room_.wait_for(lock, left);
  }
  ++taken_;
  if (!idle_.empty()) {
    connection = std::move(idle_.back());
    idle_.pop_back();
  }
  return true;
}

void SocketPool::Give(std::unique_ptr<BlockingConnection> connection, Micros now) {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
    if (connection != nullptr && connection->usable()) {
      connection->idle_since = now;
      idle_.push_back(std::move(connection));
    }
  }
  room_.notify_one();
}

void SocketPool::CloseIdle() {
  std::vector<std::unique_ptr<BlockingConnection>> closed;
  const std::lock_guard lock(mutex_);
  closed.swap(idle_);
}

void SocketPool::CloseOld(Micros now) {
  std::vector<std::unique_ptr<BlockingConnection>> closed;
  const std::lock_guard lock(mutex_);
  const auto young = std::find_if(idle_.begin(), idle_.end(), [&](const auto& connection) {
    return now - connection->idle_since < kIdleMax;
  });
  std::move(idle_.begin(), young, std::back_inserter(closed));
  idle_.erase(idle_.begin(), young);
}

}  // namespace firn::client
