#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/units.h"

namespace firn {

// Where other threads leave what the control thread takes. Push and Wake are thread-safe, Take is
// for one thread. Bounded by what its owner has asked for: nothing else is pushed.
template <typename T>
class Inbox {
 public:
  void Push(T item) {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
    arrived_.notify_one();
  }

  // Makes a Take that waits return; or the next one, if none waits.
  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    arrived_.notify_one();
  }

  // All there is, in order; when there is nothing, waits up to `wait` for something.
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
