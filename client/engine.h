#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/call/caller.h"
#include "client/client_options.h"
#include "client/fleet/fleet.h"
#include "client/local_supply.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/time/clock.h"

namespace firn::client {

// The parts of a Client in one process: the servers, the callers, the source of lists and the local
// ranges. Thread-safe.
//
// Sharp edge: a forked child must neither use nor destroy the engine that it inherits: its threads
// do not exist there, its locks may never be released, and the fork closed its connections
// (common/base/fork.h). The child creates another engine and never frees this one's memory.
class Engine final : public RangeFetcher {
 public:
  // Starts the threads and the source. status() reports invalid options.
  explicit Engine(const ClientOptions& options);
  ~Engine() { Stop(); }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Ends calls with kUnavailable, their callbacks, and the threads. Later calls are dropped. Not on
  // a thread of this engine.
  void Stop();

  bool InChild() const { return sentinel_.InChild(); }

  const Status& status() const { return status_; }

  // Returns an id without a call: at once, or from a fetch in progress, within a share of the
  // call's time.
  std::optional<int64_t> TakeLocal(std::string_view tag);
  std::optional<int64_t> AwaitLocal(std::string_view tag, Micros deadline);

  // Returns the deadline of a call that begins now.
  Micros DeadlineOf(const CallOptions& call) const;

  Result<Reply> Call(Ask ask, Micros deadline, CallReport* report);
  // `done` runs later on the thread of callbacks, or inside this call if there is no such thread.
  void Start(Ask ask, const CallOptions& call, CallDone done);
  // Calls `done` on that thread without asking a server.
  void Answer(std::function<void()> done) { async_->Post(std::move(done)); }

  void Fetch(const std::string& tag, int64_t count, Done done) override;

  LocalSupply* local() const { return local_.get(); }
  ClusterView View() const { return fleet_.View(); }
  ClientCounters counters() const;

 private:
  static constexpr int kPatienceShare = 4;  // the rest of the time is enough to ask a server

  // Returns the options with a listener that also notifies the source of trouble.
  ClientOptions Overheard(ClientOptions options);
  Result<std::unique_ptr<ServerSource>> OpenSource(const ClientOptions& options);
  void AskForServers(int64_t known_version, std::function<void(Result<ToldServers>)> done);
  // Returns the fault of the client or of the arguments that keeps a call from being sent, or ok.
  Status Refusal(const Ask& ask);

  ForkSentinel sentinel_;
  const Milliseconds deadline_;
  const Clock& clock_;
  Status status_;
  CloseOnFork fds_;
  TlsContext tls_;
  Fleet fleet_;
  // Empty if the process lacks descriptors or threads for them, which status() reports.
  std::optional<Caller> blocking_;  // blocking calls, and fetches: no callback delays them
  std::optional<Caller> async_;     // calls with callbacks, which run on its IO thread
  std::unique_ptr<ServerSource> source_;
  std::unique_ptr<LocalSupply> local_;
};

}  // namespace firn::client
