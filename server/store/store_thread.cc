#include "server/store/store_thread.h"

#include <utility>

#include "common/base/no_signals.h"

namespace firn {

StoreThread::StoreThread()
    : shared_(std::make_unique<Shared>()),
      thread_(ThreadWithoutSignals([this] { Loop(*shared_); })) {}

StoreThread::~StoreThread() { Stop(); }

bool StoreThread::Post(std::function<void()> task) {
  if (sentinel_.InChild()) return false;
  {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->running || shared_->queue.size() == kQueueMax) return false;
    shared_->queue.push_back(std::move(task));
  }
  shared_->posted.notify_one();
  return true;
}

void StoreThread::Stop() {
  if (sentinel_.InChild()) {
    // The child does not have the parent's thread. A mutex that was locked at the fork is never
    // unlocked in the child, and destroying a condition variable waits for its waiting threads. So
    // both are leaked.
    if (thread_.joinable()) thread_.detach();
    if (shared_ != nullptr) static_cast<void>(new std::unique_ptr<Shared>(std::move(shared_)));
    return;
  }
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->running = false;
    shared_->queue.clear();
  }
  shared_->posted.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StoreThread::Loop(Shared& shared) {
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(shared.mutex);
      shared.posted.wait(lock, [&] { return !shared.running || !shared.queue.empty(); });
      if (!shared.running) return;
      task = std::move(shared.queue.front());
      shared.queue.pop_front();
    }
    task();
  }
}

}  // namespace firn
