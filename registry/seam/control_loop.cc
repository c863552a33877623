#include "registry/seam/control_loop.h"

#include <future>
#include <utility>

#include "common/base/no_signals.h"

namespace firn {

ControlLoop::ControlLoop(const Clock& clock, std::unique_ptr<Coordinator> coordinator)
    : clock_(clock), coordinator_(std::move(coordinator)) {}

ControlLoop::~ControlLoop() { Stop(); }

void ControlLoop::Start(std::function<void(Now)> tick) {
  const std::scoped_lock lock(mutex_);
  if (running_) Die("a control loop was started twice");
  running_ = true;
  thread_ = ThreadWithoutSignals([this, tick = std::move(tick)] { Loop(tick); });
}

void ControlLoop::StartByHand(std::function<void(Now)> tick) {
  const std::scoped_lock lock(mutex_);
  if (running_) Die("a control loop was started twice");
  running_ = true;
  by_hand_ = std::move(tick);
}

void ControlLoop::Round() { TakeRound(Milliseconds(0), by_hand_); }

void ControlLoop::Post(std::function<void()> task) {
  if (sentinel_.InChild()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (!running_) return;
    posted_.push_back(std::move(task));
  }
  coordinator_->Wake();
}

bool ControlLoop::Run(const std::function<void()>& task) {
  if (sentinel_.InChild()) return false;
  std::promise<void> done;
  {
    std::unique_lock lock(mutex_);
    if (!running_ || by_hand()) {
      lock.unlock();
      task();
      return true;
    }
    posted_.push_back([&] {
      task();
      done.set_value();
    });
  }
  coordinator_->Wake();
  done.get_future().wait();
  return true;
}

void ControlLoop::Stop() {
  if (sentinel_.InChild()) {
    // The thread is the parent's, and a holder of the mutex at the fork does not exist here.
    if (thread_.joinable()) thread_.detach();
    return;
  }
  {
    const std::scoped_lock lock(mutex_);
    running_ = false;
  }
  coordinator_->Wake();
  if (thread_.joinable()) thread_.join();
}

void ControlLoop::Loop(const std::function<void(Now)>& tick) {
  while (TakeRound(kTickInterval, tick)) {
  }
}

// False after the last round.
bool ControlLoop::TakeRound(Milliseconds wait, const std::function<void(Now)>& tick) {
  coordinator_->Dispatch(wait);
  bool running = false;
  {
    const std::scoped_lock lock(mutex_);
    running = running_;
  }
  RunPosted();  // also in the last round: tasks posted before Stop still run
  tick(clock_.Read());
  return running;
}

void ControlLoop::RunPosted() {
  std::vector<std::function<void()>> tasks;
  {
    const std::scoped_lock lock(mutex_);
    tasks.swap(posted_);
  }
  for (const auto& task : tasks) task();
}

}  // namespace firn
