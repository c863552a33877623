#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "client/call/async_caller.h"
#include "client/client_options.h"
#include "client/fleet/fleet.h"
#include "client/local_supply.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/time/clock.h"

namespace firn::client {

// Everything that a Client is in one process: the servers, those who call them, and where lists and
// local ranges come from. Thread-safe.
//
// Sharp edge: a forked child must neither use nor destroy the engine that it inherits: its threads
// do not exist there, its locks may be held for ever, and its connections were closed by the fork
// (common/base/fork.h). The child makes another, and leaves this one's memory as it is.
class Engine final : public RangeFetcher {
 public:
  // Starts the threads and the source. Options that cannot be used are told by status().
  explicit Engine(const ClientOptions& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  bool InChild() const { return sentinel_.InChild(); }

  const Status& status() const { return status_; }

  // An id that needs no server: at once, or from a fetch that is under way, within a share of the
  // call's time.
  std::optional<int64_t> TakeLocal(std::string_view tag);
  std::optional<int64_t> AwaitLocal(std::string_view tag, Micros deadline);

  // When a call must be over that begins now.
  Micros DeadlineOf(const CallOptions& call) const;

  Result<Reply> Call(Ask ask, Micros deadline, CallReport* report);
  // `done` runs on the thread of callbacks, later; in here when there is no such thread.
  void Start(Ask ask, const CallOptions& call, AsyncCall::Done done);
  // Answers `done` on that thread without asking anybody.
  void Answer(std::function<void()> done) { async_->Post(std::move(done)); }

  void Fetch(const std::string& tag, int64_t count, Done done) override;

  LocalSupply* local() const { return local_.get(); }
  ClusterView View() const { return fleet_.View(); }
  ClientCounters counters() const;

 private:
  static constexpr int kPatienceShare = 4;  // what is left is enough to ask a server after all

  // The options, with an ear for trouble: the source is to hear of it, too.
  ClientOptions Overheard(ClientOptions options);
  Result<std::unique_ptr<ServerSource>> OpenSource(const ClientOptions& options);
  void AskForServers(int64_t known_version, std::function<void(Result<ToldServers>)> done);
  // Why this is asked of nobody, if it is not.
  Status Refusal(const Ask& ask);

  ForkSentinel sentinel_;
  const Milliseconds deadline_;
  const Clock& clock_;
  Status status_;
  CloseOnFork fds_;
  TlsContext tls_;
  Fleet fleet_;
  // None where the process has no descriptors or threads for them, which status() tells.
  std::optional<AsyncCaller> blocking_;  // calls that block, and fetches: no callback holds it up
  std::optional<AsyncCaller> async_;     // calls with callbacks, which run on its IO thread
  std::unique_ptr<ServerSource> source_;
  std::unique_ptr<LocalSupply> local_;
};

}  // namespace firn::client
