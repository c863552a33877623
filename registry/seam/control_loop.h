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

// The one thread on which a registry's coordinator lives, with everything that is driven by its
// answers: keeper of the claim, publisher, directory.
//
//     ControlLoop loop(SystemClock(), std::move(coordinator));
//     loop.Start([&](Now now) { keeper.Tick(now); publisher.Tick(now.boot); });
//     loop.Run([&] { keeper.Release(); });     // from any thread, waits
//     loop.Stop();
//
// The coordinator is used by this thread only, from Start to Stop. Objects that live on it are made
// before Start or inside Run, and destroyed after Stop or inside Run.
//
// A forked child has no such thread: nothing posted or run there is done, and Stop only lets go.
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

  // The same without a thread, for a simulation: the caller's is the one, and gives it each Round.
  void StartByHand(std::function<void(Now)> tick);
  // What the thread does again and again: answers, tasks, the tick. Waits for nothing.
  void Round();
  bool by_hand() const { return by_hand_ != nullptr; }

  // Runs `task` on the thread before its next tick, and returns at once. Thread-safe. Tasks posted
  // after Stop are dropped.
  void Post(std::function<void()> task);

  // Post, and waits for its end. Thread-safe, but not from the thread itself. After Stop, before
  // Start, or by hand, the task runs here: there is no other thread to disturb. False, with nothing
  // done, in a forked child.
  bool Run(const std::function<void()>& task);

  // Ends the thread after the tasks already posted. Idempotent; one thread at a time.
  void Stop();

 private:
  void Loop(const std::function<void(Now)>& tick);
  bool TakeRound(Milliseconds wait, const std::function<void(Now)>& tick);
  void RunPosted();

  const Clock& clock_;
  const std::unique_ptr<Coordinator> coordinator_;
  const ForkSentinel sentinel_;
  std::thread thread_;
  std::function<void(Now)> by_hand_;  // the tick, where there is no thread

  std::mutex mutex_;  // guards all below
  std::vector<std::function<void()>> posted_;
  bool running_ = false;
};

}  // namespace firn
