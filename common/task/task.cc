#include "common/task/task.h"

namespace firn {

void Trampoline::AbortIfInTask() const {
  if (running()) Die("a task was resumed inside another");
}

void Trampoline::Resume(std::coroutine_handle<> task) {
  AbortIfInTask();
  if (state_ == State::kFailed) Die("a task was resumed after an exception had ended one");
  state_ = State::kRunning;
  try {
    for (next_ = task; next_;) std::exchange(next_, {}).resume();
  } catch (...) {
    state_ = State::kFailed;
    throw;
  }
  state_ = State::kIdle;
}

}  // namespace firn
