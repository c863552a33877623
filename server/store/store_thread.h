#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/fork.h"

namespace firn {

// A thread for a store's blocking calls, so that no other thread waits for a database. Thread-safe.
//
// A forked child does not have the thread: it runs no posted task, and the destructor only
// detaches.
class StoreThread {
 public:
  // A caller has at most one call per tag in progress, so this limits how many tags can wait for
  // ranges at once.
  static constexpr size_t kQueueMax = 10'000;

  StoreThread();
  ~StoreThread();  // stops
  StoreThread(const StoreThread&) = delete;
  StoreThread& operator=(const StoreThread&) = delete;

  // Queues `task`; the thread runs tasks in order. Returns false, without an effect, if the queue
  // is full, after Stop, and in a forked child.
  [[nodiscard]] bool Post(std::function<void()> task);

  // Waits for the current task and drops the rest. Idempotent; one thread at a time.
  void Stop();

 private:
  struct Shared {
    std::mutex mutex;
    std::condition_variable posted;
    std::deque<std::function<void()>> queue;  // under mutex, as below
    bool running = true;
  };

  static void Loop(Shared& shared);

  const ForkSentinel sentinel_;
  std::unique_ptr<Shared> shared_;  // shared with the thread
  std::thread thread_;
};

}  // namespace firn
