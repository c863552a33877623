#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "common/fork_cells.h"

namespace firn {

// The one thread on which a store's blocking calls are made, so that no other thread ever waits for
// a database. Thread-safe.
//
// A forked child has no such thread: nothing posted there is done, and the destructor only lets go.
class StoreThread {
 public:
  // Callers keep one call of a tag on its way, so this is a limit on tags that run dry at once.
  static constexpr size_t kQueueMax = 10'000;

  StoreThread();
  ~StoreThread();  // stops
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // Runs `task` on the thread, in order. False, with nothing done, when the queue is full, after
  // Stop, and in a forked child.
  [[nodiscard]] bool Post(std::function<void()> task);

  // Waits for the task at hand and drops the rest. Idempotent; one thread at a time.
  void Stop();

 private:
  void Loop();

  const ForkSentinel sentinel_;
  std::mutex mutex_;  // guards queue_ and going_on_
  std::condition_variable posted_;
  std::deque<std::function<void()>> queue_;
  bool going_on_ = true;
  std::thread thread_;
};

}  // namespace firn
