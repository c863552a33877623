#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/units.h"

namespace firn {

// A queue from other threads to the control thread. Push and Wake are thread-safe, Take is for one
// thread. Its size is bounded by the owner's requests: only their answers are pushed.
template <typename T>
class Inbox {
 public:
  void Push(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    arrived_.notify_one();
  }

  // Makes a waiting Take return, or the next one if none is waiting.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    arrived_.notify_one();
  }

  // Returns all items, in order. If there is none, waits up to `wait` for one.
  std::vector<T> Take(Milliseconds wait) {
    std::unique_lock lock(mutex_);
    if (wait.count() > 0) {
      arrived_.wait_for(lock, wait, [this] { return woken_ || !items_.empty(); });
    }
    woken_ = false;
    return std::exchange(items_, {});
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<T> items_;
  bool woken_ = false;
};

}  // namespace firn
