#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <utility>

#include "client/call/call.h"
#include "client/call/connections.h"
#include "client/call/io_thread.h"
#include "client/fleet/fleet.h"
#include "client/wire/tls_context.h"
#include "common/base/fork.h"
#include "common/time/clock.h"

namespace firn::client {

// Runs calls on one IO thread, which it owns.
class Caller final {
 public:
  static constexpr size_t kCallsMax = 1 << 17;  // in progress; more are refused

  struct Options {
    CallLimits limits{};
    size_t connections = 2;  // per server
    bool gather = false;     // see Connections
    bool upkeep = false;     // also probes servers and looks up names
  };

  // Starts the IO thread.
  Caller(Fleet& fleet, TlsContext& tls, const Options& options, const Clock& clock,
         CloseOnFork& fds);
  ~Caller() { Stop(); }

  // Ends every call in progress with kUnavailable, then the thread. Calls that are started
  // afterwards, for example in callbacks, are dropped. Must not be called on the IO thread.
  void Stop();

  // Starts a call. Any thread. `done` runs once, on the IO thread, never inside this function.
  // Without `done`, the caller waits with AwaitEnd of the returned call.
  CallPtr Start(Ask ask, Micros deadline, CallReport* report, CallDone done);

  // Runs `task` on the IO thread. Any thread.
  void Post(std::function<void()> task) { io_.Post(std::move(task)); }

  // Makes calls that wait for servers retry, and closes connections to unlisted servers once they
  // are idle. Any thread.
  void OnNews();

 private:
  IoThread io_;
  Connections connections_;
  CallHost host_;
  std::atomic<bool> has_news_ = false;  // not yet seen by the IO thread
};

}  // namespace firn::client
