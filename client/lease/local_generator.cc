#include "client/lease/local_generator.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "client/lease/lease_transport.h"
#include "client/lease/leased_ids.h"
#include "client/lease/lessee.h"
#include "common/base/call_hook.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"

namespace firn {
namespace {

// A queue of outcomes, on which the lessee's thread waits.
class ReplyQueue final : public LeaseOutcomes {
 public:
  struct Received {
    uint64_t number;
    LeaseOutcome reply;
  };

  void Post(uint64_t number, LeaseOutcome reply) override {
    const std::lock_guard lock(mutex_);
    received_.push_back({number, std::move(reply)});
    changed_.notify_all();
  }

  void Stop() {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }

  void Wake() {
    const std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }

  // Waits at most `patience` for an outcome, for Wake, or, unless `stop_is_known`, for Stop.
  std::vector<Received> Await(Milliseconds patience, bool stop_is_known) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, patience, [&] {
      return !received_.empty() || woken_ || (stopping_ && !stop_is_known);
    });
    woken_ = false;
    return std::exchange(received_, {});
  }

  bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Received> received_;  // this and the next members under mutex_
  bool stopping_ = false;
  bool woken_ = false;
};

}  // namespace

class LocalGenerator::Impl {
 public:
  Impl(LeaseOptions options, std::shared_ptr<LeaseTransport> transport)
      : lessee_(WithReasons(std::move(options)), ids_, SystemEntropy(), std::move(transport),
                replies_),
        thread_([this] { Run(); }) {}

  // Must run in the process that created the object.
  ~Impl() {
    replies_->Stop();
    thread_.join();
  }

  LeasedIds& ids() { return ids_; }

  Status AwaitLease(Milliseconds patience) {
    std::unique_lock lock(mutex_);
    const bool leased = changed_.wait_for(lock, patience, [this] { return leased_; });
    return leased ? Status() : reason_;
  }

 private:
  // Returns options that also record the reason of the last failure, for AwaitLease.
  LeaseOptions WithReasons(LeaseOptions options) {
    options.on_failure = [this, next = std::move(options.on_failure)](const Status& why) {
      {
        const std::lock_guard lock(mutex_);
        reason_ = why;
      }
      CallHook(next, why);
    };
    return options;
  }

  void Run() {
    std::optional<BootMs> stop_at;
    for (BootMs wake = SystemClock().Boot();;) {
      const Milliseconds patience = std::max(wake - SystemClock().Boot(), Milliseconds(0));
      const auto received = replies_->Await(patience, stop_at.has_value());
      const Now now = SystemClock().Read();
      for (const auto& [number, reply] : received) lessee_.OnReply(number, reply, now);
      if (!stop_at && replies_->stopping()) {
        stop_at = now.boot + kStopPatience;
        lessee_.Stop(now);
      }
      lessee_.Tick(now);
      ShowLease();
      if (stop_at && (lessee_.stopped() || now.boot >= *stop_at)) return;
      wake = stop_at ? std::min(lessee_.next_tick(), *stop_at) : lessee_.next_tick();
    }
  }

  void ShowLease() {
    const bool leased = ids_.interval().has_value();
    const std::lock_guard lock(mutex_);
    if (std::exchange(leased_, leased) != leased) changed_.notify_all();
  }

  const std::shared_ptr<ReplyQueue> replies_ = std::make_shared<ReplyQueue>();
  LeasedIds ids_{SystemClock(), SystemEntropy(), CyclesAreSteady(), [this] { replies_->Wake(); }};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool leased_ = false;  // this and the next member under mutex_
  Status reason_ = Unavailable("no server has answered yet");

  Lessee lessee_;  // used by thread_ only
  std::thread thread_;
};

LocalGenerator::LocalGenerator(LeaseOptions options, std::shared_ptr<LeaseTransport> transport)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(transport))) {}

// In a forked child, leaks the implementation: its thread does not exist there, and its locks may
// never be released.
LocalGenerator::~LocalGenerator() {
  if (impl_->ids().InChild()) static_cast<void>(impl_.release());
}

Result<int64_t> LocalGenerator::Next() {
  for (;;) {
    std::chrono::microseconds wait{0};
    Result<int64_t> id = impl_->ids().TryNext(&wait);
    if (id.ok() || wait.count() == 0) return id;
    SleepFor(wait);
  }
}

Result<int64_t> LocalGenerator::TryNext() {
  std::chrono::microseconds wait{0};
  return impl_->ids().TryNext(&wait);
}

Status LocalGenerator::AwaitLease(Milliseconds patience) {
  if (impl_->ids().InChild()) return Unavailable("this process is a forked child");
  return impl_->AwaitLease(patience);
}

std::optional<MachineId> LocalGenerator::machine_id() const {
  const auto interval = impl_->ids().interval();
  return interval ? std::optional(interval->machine) : std::nullopt;
}

std::optional<WallMs> LocalGenerator::until() const {
  const auto interval = impl_->ids().interval();
  return interval ? std::optional(interval->until) : std::nullopt;
}

}  // namespace firn
