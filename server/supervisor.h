#pragma once

#include <condition_variable>
#include <csignal>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>

#include "common/base/units.h"

namespace firn {

// Communication with the process that started the server: signals, and notifications by
// sd_notify(3).

// The signals that end a server or reload its certificates: SIGTERM, SIGINT, SIGHUP. Create one per
// process, before any other thread, so that all threads block these signals; it lives as long as
// the process.
//
//  1. Starting: a signal to end ends the process at once, with exit code 0.
//  2. Serving: Next returns the signals that arrive.
//  3. Ending, after a signal to end has arrived: another one ends the process at once, with exit
//     code 1. Within kSameRequest it is ignored, because a terminal and a wrapper, for instance,
//     both pass on one Ctrl-C. Ending at once is always safe: it is what kill -9 does.
class EndSignals {
 public:
  EndSignals();
  EndSignals(const EndSignals&) = delete;
  EndSignals& operator=(const EndSignals&) = delete;

  // Ends the phase Starting: Next returns the signals from now on.
  void Serve();

  // Returns to the phase Starting. False: a signal to end has arrived before, so that the phase
  // Ending begins.
  bool StartAgain();

  // Returns the next signal; empty if none arrives within `patience`.
  std::optional<int> Next(Milliseconds patience);

 private:
  enum class Phase { kStarting, kServing, kEnding };

  static constexpr Milliseconds kSameRequest{1'000};

  void Watch();

  sigset_t signals_{};
  std::mutex mutex_;
  std::condition_variable arrived_;
  Phase phase_ = Phase::kStarting;  // under mutex_
  std::deque<int> waiting_;         // under mutex_
  BootMs ends_from_;                // under mutex_: when another signal ends the process
};

// Sends a line such as "READY=1" to the service manager, by sd_notify(3): a datagram to the socket
// in $NOTIFY_SOCKET. Does nothing if that is not set.
void NotifyServiceManager(std::string_view line);

// The service manager's watchdog, by sd_watchdog_enabled(3): it restarts a process that does not
// notify it within $WATCHDOG_USEC. Does nothing if that is not set.
class Watchdog {
 public:
  Watchdog();

  // Notifies the service manager if every thread has turned within half of the interval. Call at
  // least every 250 ms. `oldest_turn`: the last turn of the thread that is furthest behind.
  void Observe(BootMs oldest_turn, BootMs now);

 private:
  void Report(Milliseconds behind) const;

  std::optional<Milliseconds> interval_;
  BootMs next_;
  bool stuck_ = false;
};

}  // namespace firn
