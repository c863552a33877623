#include "client/engine.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "client/source/list_source.h"
#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/time/entropy.h"

namespace firn::client {
namespace {

// No call takes longer.
constexpr Milliseconds kDeadlineMax{3'600'000};

void CheckRange(const char* field, int64_t value, int64_t least, int64_t most, Faults& faults) {
  if (value >= least && value <= most) return;
  faults.Add(Cat(field, " is ", value, ", it may be ", least, " to ", most));
}

// kInvalid names every field that is out of range. The source is not looked at.
Status CheckOptions(const ClientOptions& options) {
  constexpr int64_t kHourMs = kDeadlineMax.count();
  Faults faults;
  CheckRange("deadline (ms)", options.deadline.count(), 1, kHourMs, faults);
  CheckRange("attempt_limit (ms)", options.attempt_limit.count(), 1, kHourMs, faults);
  CheckRange("attempts_max", options.attempts_max, 1, 16, faults);
  CheckRange("async_connections", options.async_connections, 1, 64, faults);
  CheckRange("blocking_connections", options.blocking_connections, 1, 4096, faults);
  if (options.hedge_after) {
    CheckRange("hedge_after (ms)", options.hedge_after->count(), 0, kHourMs, faults);
  }
  return std::move(faults).ToStatus();
}

CallPlan::Limits LimitsOf(const ClientOptions& options) {
  return {.on_failure = options.on_failure,
          .attempts_max = options.attempts_max,
          .attempt_limit = options.attempt_limit};
}

AsyncCaller::Options AsyncOptionsOf(const ClientOptions& options) {
  return {.limits = LimitsOf(options),
          .hedge_after = options.hedge_after,
          .connections = static_cast<size_t>(std::max(options.async_connections, 1))};
}

SocketPool::Options PoolOf(const ClientOptions& options) {
  return {.connections_max = static_cast<size_t>(std::max(options.blocking_connections, 1))};
}

Result<std::unique_ptr<ServerSource>> OpenSource(const ClientOptions& options) {
  return options.open_source ? options.open_source(options.servers)
                             : OpenListSource(options.servers);
}

}  // namespace

Engine::Engine(const ClientOptions& options)
    : deadline_(options.deadline),
      hedges_(options.hedge_after.has_value()),
      clock_(SystemClock()),
      status_(CheckOptions(options)),
      fleet_(options, clock_, SystemEntropy().Next()),
      pools_(PoolOf(options)),
      blocking_(fleet_, pools_, LimitsOf(options), clock_, fds_),
      async_(fleet_, pools_, AsyncOptionsOf(options), clock_, fds_) {
  fleet_.OnNews([this] {
    pools_.KeepOnly(fleet_.Numbers());
    async_.OnNews();
  });
  if (!status_.ok()) return;
  auto source = OpenSource(options);
  if (source.ok()) {
    source_ = *std::move(source);
    status_ = source_->Start([this](const ServerList& list) { fleet_.Apply(list); });
  } else {
    status_ = source.status();
  }
  if (status_.ok() && options.local_ranges) local_ = options.local_ranges(*this);
}

Engine::~Engine() {
  if (source_ != nullptr) source_->Stop();
  fleet_.Stop();
  async_.Stop();
  local_.reset();
}

Milliseconds Engine::TimeOf(const CallOptions& call) const {
  return std::clamp(call.deadline.value_or(deadline_), Milliseconds(0), kDeadlineMax);
}

std::optional<int64_t> Engine::TakeLocal(std::string_view tag) {
  return local_ == nullptr ? std::nullopt : local_->TryTake(tag);
}

std::optional<int64_t> Engine::AwaitLocal(std::string_view tag, const CallOptions& call) {
  // Answers to fetches come on the IO thread, which would wait for itself.
  if (local_ == nullptr || async_.InIoThread()) return std::nullopt;
  return local_->AwaitAndTake(tag, TimeOf(call) / kPatienceShare);
}

Result<Reply> Engine::Call(const Ask& ask, const CallOptions& call) {
  if (!status_.ok()) return status_;
  if (hedges_ && !async_.InIoThread()) return CallThroughIoThread(ask, call);
  const Micros now = clock_.BootMicros();
  return blocking_.Call(ask, now, now + TimeOf(call), call.report);
}

namespace {

// Where the IO thread leaves what came of a call: its caller may have gone.
struct Handover {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<Reply>> result;  // under mutex, as the next
  CallReport report;
};

}  // namespace

// Two servers at a time are more than one thread can wait for in the kernel. The IO thread keeps
// the deadline, unless a callback keeps the IO thread.
Result<Reply> Engine::CallThroughIoThread(const Ask& ask, const CallOptions& call) {
  const auto handover = std::make_shared<Handover>();
  const Milliseconds time = TimeOf(call);
  async_.Start(ask, clock_.BootMicros() + time,
               call.report == nullptr ? nullptr : &handover->report,
               [handover](Status status, Reply& reply) {
                 const std::lock_guard lock(handover->mutex);
                 handover->result = status.ok() ? Result<Reply>(std::move(reply)) : status;
                 handover->changed.notify_all();
               });
  std::unique_lock lock(handover->mutex);
  const auto ended = [&] { return handover->result.has_value(); };
  if (!handover->changed.wait_for(lock, time + kIoThreadGrace, ended)) {
    if (call.report != nullptr) *call.report = {};
    return Unavailable("the deadline has passed; a callback keeps the client's IO thread busy");
  }
  if (call.report != nullptr) *call.report = std::move(handover->report);
  return *std::move(handover->result);
}

void Engine::Start(Ask ask, const CallOptions& call, AsyncCall::Done done) {
  if (status_.ok()) {
    const Micros deadline = clock_.BootMicros() + TimeOf(call);
    return async_.Start(std::move(ask), deadline, call.report, std::move(done));
  }
  async_.Post([status = status_, done = std::move(done)] {
    Reply none;
    done(status, none);
  });
}

void Engine::Fetch(const std::string& tag, int64_t count, Done done) {
  Start({.method = Ask::Method::kGetRuns, .tag = tag, .number = count}, {},
        [done = std::move(done)](const Status& status, Reply& reply) {
          done(status.ok() ? Result<std::vector<IdRun>>(std::move(reply.runs)) : status);
        });
}

ClientCounters Engine::counters() const {
  ClientCounters counters = fleet_.counters();
  if (local_ != nullptr) {
    const LocalSupply::Counts counts = local_->counts();
    counters.local_taken = counts.taken;
    counters.local_missed = counts.missed;
    counters.local_awaited = counts.awaited;
    counters.local_dropped = counts.dropped;
  }
  return counters;
}

}  // namespace firn::client
