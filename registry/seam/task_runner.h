#pragma once

#include <coroutine>
#include <memory>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/task/task.h"

namespace firn {

// Conversations with the registry as tasks (common/task/task.h): a protocol that waits for answers,
// written from top to bottom. AsyncRegistry, in async_registry.h, adds the requests to a registry.
//
//  1. An answer does not resume a task but marks it ready. Tick resumes ready tasks in the order of
//     their answers, then those whose time has come, until none is left.
//  2. The time is now(), set by the last Tick. It is read where it is used and not kept across an
//     await.
//  3. An exception leaves through Tick or Start. The control thread does not catch it, so it ends
//     the process.
//
// Owned by the control thread.

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

class TaskRunner : public Trampoline {
 public:
  void Tick(BootMs now);
  BootMs now() const { return now_; }

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
  // Ends these waits permanently: later waits end at once.
  void Stop();
  bool stopped() const { return stopped_; }

 protected:
  // For answers: the next Tick resumes the task, unless it has been destroyed by then.
  void MarkReady(std::weak_ptr<TaskWait> wait) { ready_.push_back(std::move(wait)); }

 private:
  void RunReady();

  BootMs now_;
  bool stopped_ = false;
  std::vector<std::weak_ptr<TaskWait>> ready_;   // in the order of their answers
  std::vector<std::weak_ptr<TaskWait>> asleep_;  // in the order of their waits
};

}  // namespace firn
