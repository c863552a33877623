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
// top to bottom. A Task is one conversation or a part of one. A TaskRunner resumes tasks; Talk, in
// talk.h, adds the requests to a registry.
//
//  1. A task does nothing until it is started, or awaited by another task. The Task object owns its
//     frame; an awaited task's frame is inside its parent's frame. So destroying the outermost task
//     ends all of it, and later answers are dropped.
//  2. An answer does not resume a task but marks it ready. Tick resumes ready tasks in the order of
//     their answers, then those whose time has come, until none is left.
//  3. No task is resumed inside a resume, and destroying a started task inside one ends the
//     process. So code that may destroy a task runs after Tick has returned.
//  4. The time is now(), set by the last Tick. It is read where it is used and not kept across an
//     await. Nothing here reads a clock, owns a thread or sleeps.
//  5. An exception leaves through Tick or Start, past all tasks. The control thread does not catch
//     it, so it ends the process. After an exception the runner cannot be used.
//
// Sharp edge: g++ 12 destroys some temporaries of an await expression twice. So co_await is only
// used as `T x = co_await F(names);`, `co_await F(names);` or `co_return co_await F(names);`. The
// arguments are names, there are no coroutine lambdas, and parameters are values, or pointers to
// objects that outlive the task. tools/checks/tasks.py enforces this.
// Owned by the control thread.
class TaskRunner;

// One wait of a task; a member of the awaiter, and so part of the task's frame.
struct TaskWait {
  std::coroutine_handle<> task;
  BootMs until{};
};

// How a wait for a time ended.
enum class Waited {
  kOver,
  kConnectionLost,  // early: the connection was lost meanwhile
  kStopped,         // early: the task has to end
};

template <typename T = void>
class Task;

class TaskRunner {
 public:
  TaskRunner() = default;
  TaskRunner(const TaskRunner&) = delete;
  TaskRunner& operator=(const TaskRunner&) = delete;

  // Starts a task and runs it up to its first wait. The task must not outlive the runner.
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

  // Waits for the first Tick at or after `time`; does not wait if that time has come.
  Pause Until(BootMs time) { return {*this, time}; }

  // Ends the waits for a time at the next Tick. Requests need no such call: a coordinator answers
  // all of them when its connection is lost.
  void LoseConnection();
  // The same permanently: later waits end at once.
  void Stop();
  bool stopped() const { return stopped_; }

 protected:
  // For answers: the next Tick resumes the task, unless it has been destroyed by then.
  void MarkReady(std::weak_ptr<TaskWait> wait) { ready_.push_back(std::move(wait)); }

 private:
  template <typename T>
  friend class Task;
  enum class State { kIdle, kRunning, kFailed };

  void Run(std::coroutine_handle<> task);
  // Resumes `task` once the current one has suspended, so that no resume is nested in another.
  void ContinueWith(std::coroutine_handle<> task) { next_ = task; }
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

  // Whether it has started and not ended.
  bool busy() const { return frame_ && frame_.promise().runner != nullptr && !frame_.done(); }
  // Whether it has ended and its result was not taken.
  bool done() const { return frame_ && frame_.done(); }
  // Returns the result, once, when done.
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
      child_.promise().runner->ContinueWith(child_);
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
      ended.promise().runner->ContinueWith(ended.promise().parent);
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
