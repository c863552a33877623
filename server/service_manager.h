#pragma once

#include <optional>
#include <string_view>

#include "common/base/units.h"

namespace firn {

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
