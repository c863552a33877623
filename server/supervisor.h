#pragma once

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>

#include "common/base/units.h"

namespace firn {

// What a server exchanges with the process that started it: signals, and the notifications of
// sd_notify(3).

// The signals that ask a server to end, or to reload its certificates: SIGTERM, SIGINT, SIGHUP.
// Must be created before any other thread, so that they are blocked in all threads; one per
// process, for as long as the process runs.
//
//  1. Starting: a request to end is obeyed at once, exit 0, whatever the start waits for.
//  2. Serving: Next returns the signals that arrive.
//  3. Ending, once Next has returned a request to end: another one is obeyed at once, exit 1.
//
// Ending at once is always safe: it is what kill -9 does.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Ends the start: from now on Next returns the signals.
  void Serve();

  // Returns the next signal; empty if none has arrived within `patience`.
  std::optional<int> Next(Milliseconds patience);

 private:
  enum class Phase { kStarting, kServing, kEnding };

  void Watch();

  sigset_t signals_{};
  std::mutex mutex_;
  std::condition_variable arrived_;
  Phase phase_ = Phase::kStarting;  // under mutex_
  std::deque<int> waiting_;         // under mutex_
};

// Sends a line such as "READY=1" to the service manager, by the protocol of sd_notify(3): a
// datagram to the socket that $NOTIFY_SOCKET names. Does nothing where there is none.
void NotifyServiceManager(std::string_view line);

// The service manager's watchdog, by sd_watchdog_enabled(3): it kills and restarts a process that
// does not notify it within $WATCHDOG_USEC. Without that variable it does nothing.
class Watchdog {
 public:
  Watchdog();

  // Notifies the service manager if all threads have turned within half of the interval. Must be
  // called at least every 250 ms. `oldest_turn`: when the thread that is most behind turned last.
  void Observe(BootMs oldest_turn, BootMs now);

 private:
  void Report(Milliseconds behind) const;

  std::optional<Milliseconds> interval_;
  BootMs next_;
  bool stuck_ = false;
};

}  // namespace firn
