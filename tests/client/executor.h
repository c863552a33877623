#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace firn {

// A thread that runs functions, as a program may use it for callbacks. The destructor first runs
// all queued functions.
class Executor {
 public:
  Executor() : thread_([this] { Run(); }) {}
  ~Executor() {
    Add(nullptr);
    thread_.join();
  }
  void Add(std::function<void()> task) {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
    added_.notify_one();
  }
  std::thread::id id() const { return thread_.get_id(); }

 private:
  void Run() {
    for (std::unique_lock lock(mutex_);; lock.lock()) {
      added_.wait(lock, [this] { return !tasks_.empty(); });
      const std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      if (!task) return;
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::function<void()>> tasks_;  // under mutex_; an empty function ends the thread
  std::thread thread_;
};

}  // namespace firn
