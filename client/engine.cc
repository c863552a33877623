#include "client/engine.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "client/options_check.h"
#include "client/source/list_source.h"
#include "common/time/entropy.h"

namespace firn::client {
namespace {

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

bool Engine::TakeLocal(std::string_view tag, int64_t* id) {
  return local_ != nullptr && local_->TryTake(tag, id);
}

bool Engine::AwaitLocal(std::string_view tag, const CallOptions& call, int64_t* id) {
  // Answers to fetches come on the IO thread, which would wait for itself.
  if (local_ == nullptr || async_.InIoThread()) return false;
  return local_->AwaitAndTake(tag, TimeOf(call) / kPatienceShare, id);
}

Status Engine::Call(const Ask& ask, const CallOptions& call, Reply& reply) {
  if (!status_.ok()) return status_;
  if (hedges_ && !async_.InIoThread()) return CallThroughIoThread(ask, call, reply);
  const Micros now = clock_.BootMicros();
  return blocking_.Call(ask, now, now + TimeOf(call), call.report, reply);
}

namespace {

// Where the IO thread leaves what came of a call: its caller may have gone.
struct Slot {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;  // under mutex, as all below
  Status status;
  Reply reply;
  CallReport report;
};

}  // namespace

// Two servers at a time are more than one thread can wait for in the kernel. The IO thread keeps
// the deadline, unless a callback keeps the IO thread.
Status Engine::CallThroughIoThread(const Ask& ask, const CallOptions& call, Reply& reply) {
  const auto slot = std::make_shared<Slot>();
  const Milliseconds time = TimeOf(call);
  async_.Start(ask, clock_.BootMicros() + time, call.report == nullptr ? nullptr : &slot->report,
               [slot](Status status, Reply& its_reply) {
                 const std::lock_guard lock(slot->mutex);
                 slot->status = std::move(status);
                 slot->reply = std::move(its_reply);
                 slot->ended = true;
                 slot->changed.notify_all();
               });
  std::unique_lock lock(slot->mutex);
  if (!slot->changed.wait_for(lock, time + kIoThreadGrace, [&] { return slot->ended; })) {
    if (call.report != nullptr) *call.report = {};
    return Unavailable("the deadline has passed; a callback keeps the client's IO thread busy");
  }
  if (call.report != nullptr) *call.report = std::move(slot->report);
  reply = std::move(slot->reply);
  return std::move(slot->status);
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
