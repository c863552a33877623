#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/status.h"
#include "common/task/frame_pool.h"

namespace firn {

// Coroutines of one thread: code that waits for events, written from top to bottom. A Task is one
// conversation or a part of one. A Trampoline resumes tasks; its subclass decides when, as
// TaskRunner in registry/seam does.
//
//  1. A task does nothing until it is started, or awaited by another task. The Task object owns its
//     frame; an awaited task's frame is inside its parent's frame. So destroying the outermost task
//     ends all of it, and later events are dropped.
//  2. No task is resumed inside a resume, and destroying a started task inside one ends the
//     process. So code that may destroy a task runs after the resume has returned.
//  3. An exception leaves through Start or the resume, past all tasks. Afterwards the trampoline
//     cannot be used.
//  4. Nothing here reads a clock, owns a thread or sleeps.
//
// Sharp edge: g++ 12 destroys some temporaries of an await expression twice. So co_await is only
// used as `T x = co_await F(names);`, `co_await F(names);` or `co_return co_await F(names);`. The
// arguments are names, there are no coroutine lambdas, and parameters are values, or pointers to
// objects that outlive the task. tools/checks/tasks.py enforces this.
template <typename T = void>
class Task;

// Resumes the tasks of one thread.
class Trampoline {
 public:
  Trampoline() = default;
  Trampoline(const Trampoline&) = delete;
  Trampoline& operator=(const Trampoline&) = delete;

  // Starts a task and runs it up to its first wait. The task must not outlive the trampoline.
  template <typename T>
  void Start(Task<T>& task);

  bool running() const { return state_ == State::kRunning; }

 protected:
  ~Trampoline() = default;

  // Runs `task` up to its next wait, and each task that continues because of it.
  void Resume(std::coroutine_handle<> task);
  // Ends the process if a task runs.
  void AbortIfInTask() const;

 private:
  template <typename T>
  friend class Task;
  enum class State : uint8_t { kIdle, kRunning, kFailed };

  // Resumes `task` once the current one has suspended, so that no resume is nested in another.
  void ContinueWith(std::coroutine_handle<> task) { next_ = task; }

  State state_ = State::kIdle;
  std::coroutine_handle<> next_;
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

  // Whether it was started and has not ended.
  bool busy() const { return frame_ && frame_.promise().trampoline != nullptr && !frame_.done(); }
  // Whether it has ended and its result is still there.
  bool done() const { return frame_ && frame_.done(); }
  // Returns the result; once, and only if done.
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
      child_.promise().trampoline = parent.promise().trampoline;
      child_.promise().trampoline->ContinueWith(child_);
    }
    T await_resume() { return child_.promise().Take(); }

   private:
    Frame child_;
  };
  Awaiter operator co_await() && { return Awaiter(frame_); }

 private:
  friend class Trampoline;
  explicit Task(Frame frame) : frame_(frame) {}

  void Drop() {
    if (!frame_) return;
    const Trampoline* const trampoline = frame_.promise().trampoline;
    if (busy() && trampoline->running()) Die("a task was destroyed while tasks run");
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
      ended.promise().trampoline->ContinueWith(ended.promise().parent);
    }
    void await_resume() const noexcept {}
  };

  Task get_return_object() { return Task(Frame::from_promise(*this)); }
  std::suspend_always initial_suspend() const noexcept { return {}; }
  Last final_suspend() const noexcept { return {}; }
  void unhandled_exception() const { throw; }

  // The frame of a task whose only parameter points to a PooledTask is from its pool.
  static void* operator new(size_t bytes, PooledTask* task) {
    return FramePool::Allocate(bytes, &task->frames());
  }
  static void* operator new(size_t bytes) { return FramePool::Allocate(bytes, nullptr); }
  static void operator delete(void* frame, size_t bytes) { FramePool::Free(frame, bytes); }

  Trampoline* trampoline = nullptr;
  std::coroutine_handle<> parent;  // none: the outermost task
};

template <typename T>
void Trampoline::Start(Task<T>& task) {
  task.frame_.promise().trampoline = this;
  Resume(task.frame_);
}

}  // namespace firn
