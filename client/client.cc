#include "client/client.h"

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "client/engine.h"
#include "client/lease_sender.h"
#include "common/base/call_hook.h"
#include "common/base/cat.h"

namespace firn {
namespace {

using client::Ask;
using client::Engine;
using client::Reply;

Ask AskFor(Ask::Method method, std::string_view tag, int64_t number = 1) {
  return {.method = method, .tag = std::string(tag), .number = number};
}

template <typename T>
Result<T> Get(Engine& engine, Ask ask, const CallOptions& call, T Reply::*part) {
  FIRN_ASSIGN(Reply reply, engine.Call(std::move(ask), engine.DeadlineOf(call), call.report));
  return std::move(reply.*part);
}

// `done` gets a Result<T>. It is a template so that a call allocates one function, not two.
template <typename T, typename Done>
void Start(Engine& engine, Ask ask, const CallOptions& call, T Reply::*part, Done done) {
  engine.Start(std::move(ask), call, [part, done = std::move(done)](Status status, Reply& reply) {
    done(status.ok() ? Result<T>(std::move(reply.*part)) : Result<T>(std::move(status)));
  });
}

void ReportFromMemory(const CallOptions& call) {
  if (call.report != nullptr) *call.report = {.from_memory = true};
}

template <typename Done>
void StartId(Engine& engine, std::string_view tag, const CallOptions& call, Done done) {
  if (const std::optional<int64_t> id = engine.TakeLocal(tag)) {
    ReportFromMemory(call);
    return engine.Answer([id = *id, done = std::move(done)] { done(id); });
  }
  Start(engine, AskFor(Ask::Method::kGetId, tag), call, &Reply::id, std::move(done));
}

}  // namespace

// Returns the engine of this process: a forked child creates its own one on first use.
class Client::Impl {
 public:
  explicit Impl(ClientOptions options)
      : options_(std::move(options)), engine_(Engine::Open(options_)) {}

  ~Impl() {
    Engine* engine = engine_.load(std::memory_order_acquire);
    if (!engine->InChild()) engine->Close();
  }

  Engine& engine() {
    Engine* engine = engine_.load(std::memory_order_acquire);
    return engine->InChild() ? Reborn(engine) : *engine;
  }

  // The result of a call, for its callback.
  template <typename T>
  struct Held {
    explicit Held(Result<T> got) : result(std::move(got)) {}

    Result<T> result;
    std::atomic<bool> taken = false;
  };

  // Returns a function that runs `done` where the program runs its callbacks.
  template <typename T>
  auto There(Callback<T> done) const {
    return [this, done = std::move(done)](Result<T> result) { Run(done, std::move(result)); };
  }

 private:
  template <typename T>
  void Run(const Callback<T>& done, Result<T> result) const {
    if (!options_.callbacks) return CallHook(done, std::move(result));
    // The program may throw after it has taken or even run the function, and must not run it twice.
    const std::function<void()> run = [done, held = std::make_shared<Held<T>>(std::move(result))] {
      if (!held->taken.exchange(true)) done(std::move(held->result));
    };
    try {
      options_.callbacks(run);
    } catch (...) {
      CallHook(run);
    }
  }

  // Uses no lock: in the child, a thread that does not exist there could hold it.
  Engine& Reborn(Engine* inherited) {
    Engine* const own = Engine::Open(options_);
    if (!engine_.compare_exchange_strong(inherited, own, std::memory_order_acq_rel)) {
      own->Close();
      return *inherited;  // another thread has created it
    }
    CallHook(options_.on_event,
             ClientEvent{ClientEvent::Kind::kForked, "", "starts again in a forked child"});
    return *own;
  }

  const ClientOptions options_;
  std::atomic<Engine*> engine_;
};

Result<std::unique_ptr<Client>> Client::Make(ClientOptions options) {
  auto client = std::make_unique<Client>(std::move(options));
  FIRN_TRY(client->status());
  return client;
}

Client::Client(ClientOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Client::~Client() = default;

Status Client::status() const { return impl_->engine().status(); }

Result<int64_t> Client::GetId(std::string_view tag, const CallOptions& call) {
  Engine& engine = impl_->engine();
  std::optional<int64_t> local = engine.TakeLocal(tag);
  client::Micros deadline{0};
  if (!local) {
    deadline = engine.DeadlineOf(call);
    local = engine.AwaitLocal(tag, deadline);
  }
  if (local) {
    ReportFromMemory(call);
    return *local;
  }
  FIRN_ASSIGN(const Reply reply,
              engine.Call(AskFor(Ask::Method::kGetId, tag), deadline, call.report));
  return reply.id;
}

Result<std::vector<int64_t>> Client::GetIds(std::string_view tag, int32_t count,
                                            const CallOptions& call) {
  return Get(impl_->engine(), AskFor(Ask::Method::kGetIds, tag, count), call, &Reply::ids);
}

Result<std::vector<IdRun>> Client::GetRuns(std::string_view tag, int64_t count,
                                           const CallOptions& call) {
  return Get(impl_->engine(), AskFor(Ask::Method::kGetRuns, tag, count), call, &Reply::runs);
}

Result<std::string> Client::GetText(std::string_view tag, const CallOptions& call) {
  return Get(impl_->engine(), AskFor(Ask::Method::kGetText, tag), call, &Reply::text);
}

Result<Explanation> Client::Explain(int64_t id, std::string_view layout, const CallOptions& call) {
  Ask ask = AskFor(Ask::Method::kExplain, {}, id);
  ask.layout = layout;
  Engine& engine = impl_->engine();
  FIRN_ASSIGN(const Reply reply, engine.Call(std::move(ask), engine.DeadlineOf(call), call.report));
  return *reply.explanation;
}

void Client::GetId(std::string_view tag, Callback<int64_t> done, const CallOptions& call) {
  StartId(impl_->engine(), tag, call, impl_->There(std::move(done)));
}

void Client::GetIds(std::string_view tag, int32_t count, Callback<std::vector<int64_t>> done,
                    const CallOptions& call) {
  Start(impl_->engine(), AskFor(Ask::Method::kGetIds, tag, count), call, &Reply::ids,
        impl_->There(std::move(done)));
}

void Client::GetRuns(std::string_view tag, int64_t count, Callback<std::vector<IdRun>> done,
                     const CallOptions& call) {
  Start(impl_->engine(), AskFor(Ask::Method::kGetRuns, tag, count), call, &Reply::runs,
        impl_->There(std::move(done)));
}

void Client::GetText(std::string_view tag, Callback<std::string> done, const CallOptions& call) {
  Start(impl_->engine(), AskFor(Ask::Method::kGetText, tag), call, &Reply::text,
        impl_->There(std::move(done)));
}

std::future<Result<int64_t>> Client::GetIdLater(std::string_view tag, const CallOptions& call) {
  auto promise = std::make_shared<std::promise<Result<int64_t>>>();
  std::future<Result<int64_t>> later = promise->get_future();
  StartId(impl_->engine(), tag, call,
          [promise](Result<int64_t> id) { promise->set_value(std::move(id)); });
  return later;
}

Result<std::unique_ptr<LocalGenerator>> Client::OpenGenerator(LeaseOptions options,
                                                              Milliseconds patience) const {
  FIRN_TRY(CheckLeaseOptions(options));
  auto sender = std::make_shared<client::LeaseSender>(impl_->engine().shared_from_this());
  FIRN_TRY(sender->status());
  auto generator = std::make_unique<LocalGenerator>(std::move(options), std::move(sender));
  FIRN_TRY(generator->AwaitLease(patience));
  return generator;
}

ClusterView Client::cluster() const { return impl_->engine().View(); }
ClientCounters Client::counters() const { return impl_->engine().counters(); }
LocalSupply* Client::local() const { return impl_->engine().local(); }

}  // namespace firn
