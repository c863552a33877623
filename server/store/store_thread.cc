#include "server/store/store_thread.h"

#include <utility>

namespace firn {

StoreThread::StoreThread() : thread_([this] { Loop(); }) {}

StoreThread::~StoreThread() { Stop(); }

bool StoreThread::Post(std::function<void()> task) {
  if (sentinel_.InChild()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (!going_on_ || queue_.size() == kQueueMax) return false;
    queue_.push_back(std::move(task));
  }
  posted_.notify_one();
  return true;
}

void StoreThread::Stop() {
  if (sentinel_.InChild()) {
    // The thread is the parent's, and whoever held the mutex at the fork is not here to let it go.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    going_on_ = false;
    queue_.clear();
  }
  posted_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StoreThread::Loop() {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(mutex_);
      posted_.wait(lock, [this] { return !going_on_ || !queue_.empty(); });
      if (!going_on_) return;
      task = std::move(queue_.front());
      queue_.pop_front();
    }
    task();
  }
}

}  // namespace firn
