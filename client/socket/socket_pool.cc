#include "client/socket/socket_pool.h"

#include <algorithm>
#include <utility>

namespace firn::client {
namespace {

// Where a thread looks first.
size_t OwnPlace() { return static_cast<size_t>(std::max(ThreadIndex(), 0)); }

}  // namespace

SocketPool::~SocketPool() { CloseIdle(); }

std::optional<SocketPool::Room> SocketPool::TryTake() {
  for (size_t i = 0, at = OwnPlace(); i < idle_.size(); ++i, at = (at + 1) % idle_.size()) {
    if (idle_[at].load() == nullptr) continue;
    Room idle(idle_[at].exchange(nullptr));
    if (idle != nullptr) return idle;
  }
  size_t rooms = rooms_.load();
  while (rooms < options_.connections_max) {
    if (rooms_.compare_exchange_weak(rooms, rooms + 1)) return Room();
  }
  return std::nullopt;
}

std::optional<SocketPool::Room> SocketPool::Take(Micros until, const Clock& clock) {
  std::optional<Room> taken = TryTake();
  if (taken) return taken;
  // Told before the places are looked at once more: whoever fills one from now on wakes somebody.
  ++waiting_;
  std::unique_lock lock(mutex_);
  for (taken = TryTake(); !taken; taken = TryTake()) {
    const Micros left = until - clock.BootMicros();
    if (left <= Micros(0)) break;
    room_.wait_for(lock, left);
  }
  --waiting_;
  return taken;
}

bool SocketPool::Keep(size_t at, Room& connection) {
  for (size_t i = 0; i < idle_.size(); ++i, at = (at + 1) % idle_.size()) {
    BlockingConnection* free = nullptr;
    if (!idle_[at].compare_exchange_strong(free, connection.get())) continue;
    connection.release();
    return true;
  }
  return false;
}

void SocketPool::Give(Room connection) {
  const bool kept = connection != nullptr && connection->usable() && Keep(OwnPlace(), connection);
  if (!kept) --rooms_;
  WakeOne();
}

void SocketPool::WakeOne() {
  if (waiting_ == 0) return;
  { const std::lock_guard lock(mutex_); }  // one that has looked in vain waits by now
  room_.notify_one();
}

void SocketPool::CloseIdleSince(Micros latest) {
  for (size_t at = 0; at < idle_.size(); ++at) {
    Room connection(idle_[at].exchange(nullptr));
    if (connection == nullptr) continue;
    const bool kept = connection->idle_since() > latest && Keep(at, connection);
    if (!kept) --rooms_;
    WakeOne();
  }
}

}  // namespace firn::client
