#include "client/engine.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "client/source/list_source.h"
#include "client/source/seed_source.h"
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
  CheckRange("connections", options.connections, 1, 64, faults);
  if (options.hedge_after) {
    CheckRange("hedge_after (ms)", options.hedge_after->count(), 0, kHourMs, faults);
  }
  return std::move(faults).ToStatus();
}

AsyncCaller::Options CallerOptions(const ClientOptions& options, bool upkeep) {
  return {.limits = {.on_failure = options.on_failure,
                     .attempts_max = options.attempts_max,
                     .attempt_limit = options.attempt_limit},
          .hedge_after = options.hedge_after,
          .connections = static_cast<size_t>(std::max(options.connections, 1)),
          .upkeep = upkeep};
}

// Whether a newer list may help.
bool IsTrouble(ClientEvent::Kind kind) {
  switch (kind) {
    case ClientEvent::Kind::kServerOut:
    case ClientEvent::Kind::kQuarantined:
    case ClientEvent::Kind::kDraining:
    case ClientEvent::Kind::kNoServer:
      return true;
    case ClientEvent::Kind::kList:
    case ClientEvent::Kind::kServerBack:
    case ClientEvent::Kind::kForked:
      break;
  }
  return false;
}

}  // namespace

Engine::Engine(const ClientOptions& options)
    : deadline_(options.deadline),
      clock_(SystemClock()),
      status_(CheckOptions(options)),
      fleet_(Overheard(options), clock_, SystemEntropy().Next()),
      blocking_(fleet_, CallerOptions(options, /*upkeep=*/true), clock_, fds_),
      async_(fleet_, CallerOptions(options, /*upkeep=*/false), clock_, fds_) {
  fleet_.OnNews([this] {
    blocking_.OnNews();
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

ClientOptions Engine::Overheard(ClientOptions options) {
  options.on_event = [this, told = std::move(options.on_event)](const ClientEvent& event) {
    if (told) told(event);
    if (source_ != nullptr && IsTrouble(event.kind)) source_->Hurry();
  };
  return options;
}

Result<std::unique_ptr<ServerSource>> Engine::OpenSource(const ClientOptions& options) {
  if (options.servers.starts_with(kSeedScheme)) {
    const auto ask = [this](int64_t known_version, auto done) {
      AskForServers(known_version, std::move(done));
    };
    return OpenSeedSource(options.servers, ask, options.on_event, SystemEntropy());
  }
  return options.open_source ? options.open_source(options.servers)
                             : OpenListSource(options.servers);
}

// As any other call: whoever is fit is asked, on connections that are open anyway.
void Engine::AskForServers(int64_t known_version, std::function<void(Result<ToldServers>)> done) {
  constexpr Milliseconds kPatience{5'000};
  constexpr std::string_view kNoTag = "servers()";  // no tag may be called that
  Ask ask{.method = Ask::Method::kServers, .tag = std::string(kNoTag), .number = known_version};
  StartBy(blocking_, std::move(ask), {.deadline = std::max(deadline_, kPatience)},
          [done = std::move(done)](const Status& status, Reply& reply) {
            done(status.ok() ? Result<ToldServers>(std::move(reply.told)) : status);
          });
}

Engine::~Engine() {
  if (source_ != nullptr) source_->Stop();
  async_.Stop();  // first: its callbacks may make blocking calls
  blocking_.Stop();
  local_.reset();
}

Milliseconds Engine::TimeOf(const CallOptions& call) const {
  return std::clamp(call.deadline.value_or(deadline_), Milliseconds(0), kDeadlineMax);
}

std::optional<int64_t> Engine::TakeLocal(std::string_view tag) {
  return local_ == nullptr ? std::nullopt : local_->TryTake(tag);
}

std::optional<int64_t> Engine::AwaitLocal(std::string_view tag, const CallOptions& call) {
  if (local_ == nullptr) return std::nullopt;
  return local_->AwaitAndTake(tag, TimeOf(call) / kPatienceShare);
}

namespace {

// Where the IO thread leaves what came of a call, for the thread that sleeps on `ended`.
struct Handover {
  Status status;
  Reply reply;
  std::atomic<int> ended = 0;
};

}  // namespace

Result<Reply> Engine::Call(Ask ask, const CallOptions& call) {
  if (!status_.ok()) return status_;
  // The IO thread still touches it when the caller is awake already.
  const auto handover = std::make_shared<Handover>();
  StartBy(blocking_, std::move(ask), call, [handover](Status status, Reply& reply) {
    handover->status = std::move(status);
    if (handover->status.ok()) handover->reply = std::move(reply);
    handover->ended.store(1, std::memory_order_release);
    handover->ended.notify_one();
  });
  handover->ended.wait(0, std::memory_order_acquire);
  if (!handover->status.ok()) return std::move(handover->status);
  return std::move(handover->reply);
}

void Engine::Start(Ask ask, const CallOptions& call, AsyncCall::Done done) {
  if (status_.ok()) return StartBy(async_, std::move(ask), call, std::move(done));
  async_.Post([status = status_, done = std::move(done)] {
    Reply none;
    done(status, none);
  });
}

void Engine::StartBy(AsyncCaller& caller, Ask ask, const CallOptions& call, AsyncCall::Done done) {
  caller.Start(std::move(ask), clock_.BootMicros() + TimeOf(call), call.report, std::move(done));
}

void Engine::Fetch(const std::string& tag, int64_t count, Done done) {
  StartBy(blocking_, {.method = Ask::Method::kGetRuns, .tag = tag, .number = count}, {},
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
