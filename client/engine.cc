#include "client/engine.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <utility>

#include "client/source/list_source.h"
#include "client/source/seed_source.h"
#include "common/base/call_hook.h"
#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/id/layout.h"
#include "common/tag/tag_name.h"
#include "common/time/entropy.h"

namespace firn::client {
namespace {

// Maximum deadline of a call.
constexpr Milliseconds kDeadlineMax{3'600'000};
// Maximum number of ids in one list. The client does not limit runs.
constexpr int64_t kIdsMax = 100'000;

void CheckRange(const char* field, int64_t value, int64_t least, int64_t most, Faults& faults) {
  if (value >= least && value <= most) return;
  faults.Add(Cat(field, " is ", value, ", it may be ", least, " to ", most));
}

// kInvalid names every field that is out of range. Does not check the source.
Status CheckOptions(const ClientOptions& options) {
  constexpr int64_t kHourMs = kDeadlineMax.count();
  Faults faults;
  CheckRange("deadline (ms)", options.deadline.count(), 1, kHourMs, faults);
  CheckRange("attempt_limit (ms)", options.attempt_limit.count(), 1, kHourMs, faults);
  CheckRange("attempts_max", options.attempts_max, 1, 16, faults);
  CheckRange("connections", options.connections, 1, 64, faults);
  CheckRange("servers_max", options.servers_max, 0, ServerList::kServersMax, faults);
  if (options.tls && options.tls->cert.empty() != options.tls->key.empty()) {
    faults.Add("tls.cert and tls.key go together");
  }
  return std::move(faults).ToStatus();
}

// Returns options that can be converted without overflow, although status() reports them.
ClientOptions Bounded(ClientOptions options) {
  options.attempt_limit = std::clamp(options.attempt_limit, Milliseconds(0), kDeadlineMax);
  return options;
}

Caller::Options CallerOptions(const ClientOptions& options, bool blocking) {
  return {.limits = {.on_failure = options.on_failure,
                     .attempts_max = options.attempts_max,
                     .attempt_limit = options.attempt_limit},
          .connections = static_cast<size_t>(std::max(options.connections, 1)),
          .gather = blocking,
          .upkeep = blocking};
}

// The engine whose on_event runs on this thread.
thread_local const Engine* telling = nullptr;

// Returns whether a newer list may help.
bool IsTrouble(ClientEvent::Kind kind) {
  switch (kind) {
    case ClientEvent::Kind::kUnhealthy:
    case ClientEvent::Kind::kQuarantined:
    case ClientEvent::Kind::kDraining:
    case ClientEvent::Kind::kNoServer:
      return true;
    case ClientEvent::Kind::kList:
    case ClientEvent::Kind::kHealthy:
    case ClientEvent::Kind::kForked:
    case ClientEvent::Kind::kNotPrefetched:
      break;
  }
  return false;
}

}  // namespace

Engine::Engine(const ClientOptions& options)
    : deadline_(options.deadline),
      clock_(SystemClock()),
      status_(CheckOptions(options)),
      tls_(options.tls.value_or(TlsOptions())),
      fleet_(Overheard(Bounded(options)), clock_, SystemEntropy().Next(), [this] {
        const std::lock_guard lock(callers_mutex_);
        for (Caller* const caller : callers_) caller->OnNews();
      }) {
  Status begun = Add(blocking_, CallerOptions(Bounded(options), /*blocking=*/true));
  if (begun.ok()) begun = Add(async_, CallerOptions(Bounded(options), /*blocking=*/false));
  if (!begun.ok()) status_ = std::move(begun);
  if (status_.ok() && options.tls) status_ = tls_.Load().WithContext("tls");
  if (!status_.ok()) return;
  auto source = OpenSource(options);
  if (source.ok()) {
    source_ = *std::move(source);
    status_ = source_->Start([this](const ServerList& list) { fleet_.Apply(list); });
  } else {
    status_ = source.status();
  }
  if (!status_.ok() || !options.local_ranges) return;
  local_ = options.local_ranges(*this);
  if (local_ != nullptr) status_ = local_->status();
}

Engine* Engine::Open(const ClientOptions& options) {
  const std::shared_ptr<Engine> engine(new Engine(options));
  engine->self_ = engine;
  return engine.get();
}

Engine::~Engine() {
  if (source_ != nullptr) source_->Stop();
  if (blocking_) blocking_->Stop();
}

void Engine::Close() {
  if (telling == this) Die("a client was destroyed in one of its own callbacks");
  const std::shared_ptr<Engine> self = std::move(self_);
  if (async_) async_->Stop();  // first: its callbacks may make blocking calls
  {
    const std::unique_lock lock(closing_);
    closed_ = true;
  }
  local_.reset();
}

Status Engine::Add(std::optional<Caller>& caller, const Caller::Options& options) {
  try {
    caller.emplace(fleet_, tls_, options, clock_, fds_);
  } catch (const std::exception& error) {
    return Unavailable(Cat("the client cannot begin: ", error.what()));
  }
  const std::lock_guard lock(callers_mutex_);
  callers_.push_back(&*caller);
  return {};
}

void Engine::Remove(std::optional<Caller>& caller) {
  if (!caller) return;
  {
    const std::lock_guard lock(callers_mutex_);
    std::erase(callers_, &*caller);
  }
  caller->Stop();  // before the object is empty: its IO thread uses it
  caller.reset();
}

ClientOptions Engine::Overheard(ClientOptions options) {
  options.on_event = [this, told = std::move(options.on_event)](const ClientEvent& event) {
    {
      const std::shared_lock lock(closing_);
      const Engine* const outer = std::exchange(telling, this);
      if (!closed_) CallHook(told, event);
      telling = outer;
    }
    if (source_ != nullptr && IsTrouble(event.kind)) source_->Hurry();
  };
  return options;
}

Result<std::unique_ptr<ServerSource>> Engine::OpenSource(const ClientOptions& options) {
  if (options.servers.starts_with(kSeedScheme)) {
    const auto ask = [this](int64_t known_version, auto done) {
      AskForServers(known_version, std::move(done));
    };
    return OpenSeedSource(options.servers, ask, Overheard(options).on_event, SystemEntropy());
  }
  return options.open_source ? options.open_source(options.servers)
                             : OpenListSource(options.servers);
}

// Asks a healthy server on an open connection, like any other call.
void Engine::AskForServers(int64_t known_version, std::function<void(Result<ToldServers>)> done) {
  constexpr Milliseconds kPatience{5'000};
  constexpr std::string_view kNoTag = "servers()";  // not the name of a tag
  Ask ask{.method = Ask::Method::kServers, .tag = std::string(kNoTag), .number = known_version};
  blocking_->Start(std::move(ask), DeadlineOf({.deadline = std::max(deadline_, kPatience)}),
                   nullptr, [done = std::move(done)](const Status& status, Reply& reply) {
                     done(status.ok() ? Result<ToldServers>(*reply.told) : status);
                   });
}

Micros Engine::DeadlineOf(const CallOptions& call) const {
  const Milliseconds time = call.deadline.value_or(deadline_);
  return clock_.BootMicros() + std::clamp(time, Milliseconds(0), kDeadlineMax);
}

std::optional<int64_t> Engine::TakeLocal(std::string_view tag) {
  return local_ == nullptr ? std::nullopt : local_->TryTake(tag);
}

std::optional<int64_t> Engine::AwaitLocal(std::string_view tag, Micros deadline) {
  if (local_ == nullptr) return std::nullopt;
  const Micros left = deadline - clock_.BootMicros();
  return local_->AwaitAndTake(tag, std::chrono::duration_cast<Milliseconds>(left) / kPatienceShare);
}

// Servers close the connection at a request that is longer than any valid one, so check the length
// here.
Status Engine::Refusal(const Ask& ask) {
  if (!status_.ok()) return status_;
  const auto too_long = [this](std::string_view what, size_t bytes, size_t most) {
    fleet_.Count(&ClientCounters::invalid);
    return Invalid(Cat(what, " has ", bytes, " bytes, more than ", most));
  };
  if (ask.tag.size() > kTagNameMax) return too_long("a tag's name", ask.tag.size(), kTagNameMax);
  if (ask.layout.size() > Layout::kTextMax) {
    return too_long("a layout", ask.layout.size(), Layout::kTextMax);
  }
  const bool lists = ask.method == Ask::Method::kGetIds;
  if (lists || ask.method == Ask::Method::kGetRuns) {
    const int64_t most = lists ? kIdsMax : INT64_MAX;
    if (ask.number < 1 || ask.number > most) {
      fleet_.Count(&ClientCounters::invalid);
      return Invalid(Cat("the count is ", ask.number, "; it must be 1 to ", most));
    }
  }
  return {};
}

Result<Reply> Engine::Call(Ask ask, Micros deadline, CallReport* report) {
  if (report != nullptr) *report = {};
  FIRN_TRY(Refusal(ask));
  const CallPtr call = blocking_->Start(std::move(ask), deadline, report, nullptr);
  call->AwaitEnd();
  FIRN_TRY(std::move(call->status()));
  return std::move(call->reply);
}

void Engine::Start(Ask ask, const CallOptions& call, CallDone done) {
  if (call.report != nullptr) *call.report = {};
  Status refusal = Refusal(ask);
  if (refusal.ok()) {
    async_->Start(std::move(ask), DeadlineOf(call), call.report, std::move(done));
    return;
  }
  Reply none;
  if (!async_) return done(std::move(refusal), none);
  async_->Post([refusal = std::move(refusal), done = std::move(done)] {
    Reply nothing;
    done(refusal, nothing);
  });
}

void Engine::Fetch(const std::string& tag, int64_t count, Done done) {
  blocking_->Start({.method = Ask::Method::kGetRuns, .tag = tag, .number = count}, DeadlineOf({}),
                   nullptr,
                   [this, tag, done = std::move(done)](const Status& status, Reply& reply) {
                     if (status.code() == Code::kDenied) fleet_.TellNotPrefetched(tag, status);
                     const std::shared_lock lock(closing_);
                     if (closed_) return;
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
