#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

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
// ranges. Generators share the servers and the source, and may outlive the client. Thread-safe.
//
// Sharp edge: a forked child must neither use nor destroy the engine that it inherits: its threads
// do not exist there, its locks may never be released, and the fork closed its connections
// (common/base/fork.h). The child creates another engine and never frees this one's memory.
class Engine final : public RangeFetcher, public std::enable_shared_from_this<Engine> {
 public:
  // Returns an engine that exists until Close, and as long as others own it. Starts the threads and
  // the source. status() reports invalid options.
  static Engine* Open(const ClientOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Ends what belongs to the client: its calls with kUnavailable, their callbacks, events, and the
  // local ranges. Later calls are dropped. Not on a thread of this engine.
  void Close();

  // Starts a caller for another user of the servers, who must remove it. kUnavailable: the process
  // lacks descriptors or threads for it.
  Status Add(std::optional<Caller>& caller, const Caller::Options& options);
  void Remove(std::optional<Caller>& caller);
  // Returns whether the server list contains this address.
  bool Lists(const std::string& address) { return !fleet_.Find({&address, 1}).empty(); }

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
  // Calls `done` on that thread without sending a request.
  void Answer(std::function<void()> done) { async_->Post(std::move(done)); }

  void Fetch(const std::string& tag, int64_t count, Done done) override;

  LocalSupply* local() const { return local_.get(); }
  ClusterView View() const { return fleet_.View(); }
  ClientCounters counters() const;

 private:
  static constexpr int kPatienceShare = 4;  // the remaining time suffices for a request to a server

  explicit Engine(const ClientOptions& options);
  // Returns the options with a listener that also notifies the source of trouble, and that is
  // silent after Close.
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
  std::mutex callers_mutex_;
  std::vector<Caller*> callers_;  // under callers_mutex_
  // Held by events and by answers to fetches, so that Close waits for them.
  std::shared_mutex closing_;
  bool closed_ = false;           // under closing_
  std::shared_ptr<Engine> self_;  // until Close
  // Empty if the process lacks descriptors or threads for them, which status() reports.
  std::optional<Caller> blocking_;  // blocking calls and fetches, which no callback delays
  std::optional<Caller> async_;     // calls with callbacks, which run on its IO thread
  std::unique_ptr<ServerSource> source_;
  std::unique_ptr<LocalSupply> local_;
};

}  // namespace firn::client
