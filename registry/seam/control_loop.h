#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/fork.h"
#include "common/time/clock.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The thread that owns a registry's coordinator and everything that is driven by its answers:
// keeper of the claim, publisher, directory.
//
//     ControlLoop loop(SystemClock(), std::move(coordinator));
//     loop.Start([&](Now now) { keeper.Tick(now); publisher.Tick(now.boot); });
//     loop.Run([&] { keeper.Release(); });     // from any thread, waits
//     loop.Stop();
//
// Only this thread uses the coordinator, from Start to Stop. Its users are constructed before Start
// or inside Run, and destroyed after Stop or inside Run.
//
// A forked child has no such thread: Post and Run do nothing there, and Stop only detaches.
class ControlLoop {
 public:
  static constexpr Milliseconds kTickInterval{10};

  ControlLoop(const Clock& clock, std::unique_ptr<Coordinator> coordinator);
  ~ControlLoop();  // stops
  ControlLoop(const ControlLoop&) = delete;
  ControlLoop& operator=(const ControlLoop&) = delete;

  Coordinator& coordinator() { return *coordinator_; }

  // Starts the thread, which calls `tick` after each round of answers, at least every tick
  // interval.
  void Start(std::function<void(Now)> tick);

  // Like Start, but without a thread, for a simulation: the caller's thread calls Round.
  void StartByHand(std::function<void(Now)> tick);
  // One iteration of the loop: answers, tasks, the tick. Does not wait.
  void Round();
  bool by_hand() const { return by_hand_ != nullptr; }

  // Runs `task` on the thread before its next tick, and returns at once. Thread-safe. Tasks posted
  // after Stop are dropped.
  void Post(std::function<void()> task);

  // Posts the task and waits for its end. Thread-safe, but not from the thread itself. After Stop,
  // before Start, or by hand, the task runs in the caller's thread. Returns false, without running
  // it, in a forked child.
  bool Run(const std::function<void()>& task);

  // Ends the thread after the tasks posted so far. Idempotent; one thread at a time.
  void Stop();

 private:
  void Loop(const std::function<void(Now)>& tick);
  bool TakeRound(Milliseconds wait, const std::function<void(Now)>& tick);
  void RunPosted();

  const Clock& clock_;
  const std::unique_ptr<Coordinator> coordinator_;
  const ForkSentinel sentinel_;
  std::thread thread_;
  std::function<void(Now)> by_hand_;  // the tick, if there is no thread

  std::mutex mutex_;  // guards the members below
  std::vector<std::function<void()>> posted_;
  bool running_ = false;
};

}  // namespace firn
