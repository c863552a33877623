#include "registry/seam/task_runner.h"

#include <algorithm>

namespace firn {

void TaskRunner::Tick(BootMs now) {
  AbortIfInTask();
  now_ = now;
  RunReady();
  const auto due = std::stable_partition(asleep_.begin(), asleep_.end(), [now](const auto& wait) {
    const auto asleep = wait.lock();
    return asleep != nullptr && asleep->until > now;
  });
  ready_.insert(ready_.end(), due, asleep_.end());
  asleep_.erase(due, asleep_.end());
  RunReady();
}

void TaskRunner::RunReady() {
  while (!ready_.empty()) {
    for (const auto& wait : std::exchange(ready_, {})) {
      // The frame owns the wait, and may end in this resume.
      const std::coroutine_handle<> task = wait.expired() ? nullptr : wait.lock()->task;
      if (task) Resume(task);
    }
  }
}

void TaskRunner::LoseConnection() {
  for (auto& wait : std::exchange(asleep_, {})) MarkReady(std::move(wait));
}

void TaskRunner::Stop() {
  stopped_ = true;
  LoseConnection();
}

void TaskRunner::Pause::await_suspend(std::coroutine_handle<> task) {
  wait_->task = task;
  runner_.asleep_.push_back(wait_);
}

Waited TaskRunner::Pause::await_resume() const {
  if (runner_.stopped_) return Waited::kStopped;
  return runner_.now_ >= wait_->until ? Waited::kOver : Waited::kConnectionLost;
}

}  // namespace firn
