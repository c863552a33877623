#pragma once

#include <coroutine>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// Conversations with the registry as coroutines: a protocol that waits for answers, written from
// top to bottom. A Task is one conversation or a part of one; a TaskRunner (Talk, in talk.h, adds
// the questions to a registry) resumes them.
//
//  1. A task does nothing until it is started, or awaited by another task. Its frame belongs to the
//     Task object; that of an awaited one lies in its parent's frame. So destroying the outermost
//     ends all of it, and answers that come later are dropped.
//  2. An answer resumes nothing: it marks the task ready. Tick resumes those in the order of their
//     answers, then those whose time has come, until none is left.
//  3. Nothing is resumed inside a resume, and no task that has begun is destroyed inside one: that
//     ends the process. So what may destroy a task is called when Tick has returned.
//  4. The time is now(), which is the last Tick's. It is read where it is used; none is kept over
//     an await. Nothing here reads a clock, owns a thread or sleeps.
//  5. An exception leaves through Tick or Start, past all tasks. On the control thread nobody
//     catches it, so it ends the process; and whoever did could not go on with this runner.
//
// Sharp edge: g++ 12 destroys some temporaries of an await expression twice. So co_await stands
// only as `T x = co_await F(names);`, `co_await F(names);` or `co_return co_await F(names);`, the
// arguments are names, there are no coroutine lambdas, and parameters are values, or pointers to
// what outlives the task. tools/checks/tasks.py holds the tree to it.
// Owned by the control thread.
class TaskRunner;

// What one wait of a task is; it lies in the awaiter, and with it in the task's frame.
struct TaskWait {
  std::coroutine_handle<> task;
  BootMs until{};
};

// How a wait for a time has ended.
enum class Waited {
  kOver,
  kConnectionLost,  // before its time: the connection was lost meanwhile
  kStopped,         // before its time: the task is to come to its end
};

template <typename T = void>
class Task;

class TaskRunner {
 public:
  TaskRunner() = default;
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // Begins a task and runs it up to its first wait. It must not outlive the runner.
  template <typename T>
  void Start(Task<T>& task);

  void Tick(BootMs now);
  BootMs now() const { return now_; }
  bool running() const { return state_ == State::kRunning; }

  // The awaitable of Until.
  class Pause {
   public:
    Pause(TaskRunner& runner, BootMs until) : runner_(runner) { wait_->until = until; }
    bool await_ready() const { return runner_.stopped_ || runner_.now_ >= wait_->until; }
    void await_suspend(std::coroutine_handle<> task);
    Waited await_resume() const;

   private:
    TaskRunner& runner_;
    const std::shared_ptr<TaskWait> wait_ = std::make_shared<TaskWait>();
  };

  // Waits for the first Tick at or after `time`; not at all when that is now.
  Pause Until(BootMs time) { return {*this, time}; }

  // Ends the waits for a time, at the next Tick. What was asked of a registry is answered all the
  // same: a coordinator answers everything when its connection goes.
  void LoseConnection();
  // The same for good: no later wait lasts.
  void Stop();
  bool stopped() const { return stopped_; }

 protected:
  // For answers: the task goes on at the next Tick, unless it is gone by then.
  void MarkReady(std::weak_ptr<TaskWait> wait) { ready_.push_back(std::move(wait)); }

 private:
  template <typename T>
  friend class Task;
  enum class State { kIdle, kRunning, kFailed };

  void Run(std::coroutine_handle<> task);
  // Not at once but when the present one has suspended: so no resume lies inside another.
  void GoOnWith(std::coroutine_handle<> task) { next_ = task; }
  void RunReady();
  void DieInATask() const;

  State state_ = State::kIdle;
  BootMs now_;
  bool stopped_ = false;
  std::coroutine_handle<> next_;
  std::vector<std::weak_ptr<TaskWait>> ready_;   // in the order of their answers
  std::vector<std::weak_ptr<TaskWait>> asleep_;  // in the order of their waits
};

template <typename T>
class [[nodiscard]] Task {
 public:
  struct promise_type;
  using Frame = std::coroutine_handle<promise_type>;

  Task() = default;
  Task(Task&& other) noexcept : frame_(std::exchange(other.frame_, {})) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(frame_, other.frame_);
    other.Drop();
    return *this;
  }
  ~Task() { Drop(); }

  // Started and not at its end.
  bool busy() const { return frame_ && frame_.promise().runner != nullptr && !frame_.done(); }
  // At its end, with a result that was not taken.
  bool done() const { return frame_ && frame_.done(); }
  // When done, once: what it came to.
  T Take() {
    if (!done()) Die("a task was asked for its result before its end");
    const Task ended = std::move(*this);
    return ended.frame_.promise().Take();
  }

  class Awaiter {
   public:
    explicit Awaiter(Frame child) : child_(child) {}
    bool await_ready() const noexcept { return false; }
    template <typename Promise>
    void await_suspend(std::coroutine_handle<Promise> parent) {
      child_.promise().parent = parent;
      child_.promise().runner = parent.promise().runner;
      child_.promise().runner->GoOnWith(child_);
    }
    T await_resume() { return child_.promise().Take(); }

   private:
    Frame child_;
  };
  Awaiter operator co_await() && { return Awaiter(frame_); }

 private:
  friend class TaskRunner;
  explicit Task(Frame frame) : frame_(frame) {}

  void Drop() {
    if (!frame_) return;
    const TaskRunner* const runner = frame_.promise().runner;
    if (busy() && runner->running()) Die("a task was destroyed while tasks run");
    std::exchange(frame_, {}).destroy();
  }

  Frame frame_;
};

namespace task_internal {

template <typename T>
struct Value {
  std::optional<T> value;
  void return_value(T result) { value.emplace(std::move(result)); }
  T Take() { return *std::move(value); }
};

template <>
struct Value<void> {
  void return_void() const {}
  void Take() const {}
};

}  // namespace task_internal

template <typename T>
struct Task<T>::promise_type : task_internal::Value<T> {
  struct Last {
    bool await_ready() const noexcept { return false; }
    void await_suspend(Frame ended) const noexcept {
      ended.promise().runner->GoOnWith(ended.promise().parent);
    }
    void await_resume() const noexcept {}
  };

  Task get_return_object() { return Task(Frame::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Last final_suspend() const noexcept { return {}; }
  void unhandled_exception() const { throw; }

  TaskRunner* runner = nullptr;
  std::coroutine_handle<> parent;  // none: it is the outermost
};

template <typename T>
void TaskRunner::Start(Task<T>& task) {
  task.frame_.promise().runner = this;
  Run(task.frame_);
}

}  // namespace firn
