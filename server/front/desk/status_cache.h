#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "common/base/units.h"
#include "common/time/clock.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/server_view.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// The server's report for status calls, collected once for all that ask at about the same time.
// Anybody may ask, and to collect it from thousands of tags takes milliseconds. Thread-safe.
class StatusCache {
 public:
  // How long a call of GetNew is parked before it asks again.
  static constexpr std::chrono::milliseconds kAskAgain{5};

  // What one status answer is made of. Never changed, so each door encodes it once.
  struct Snapshot {
    ServerReport report;
    DeskCounters::Sums sums;
    uint64_t number;  // from 1, in the order in which they were collected
  };

  // All must outlive it. `sums`: what all desks have counted.
  StatusCache(const ServerView& view, std::function<DeskCounters::Sums()> sums, const Clock& clock);

  // Returns the latest report. It is collected again when the view's version has changed, and when
  // its time is over: 0.25 ms for each tag that it shows, from 5 ms to 250 ms.
  std::shared_ptr<const Snapshot> Get() const;

  // The same for one connection, each report once: null while the latest has been sent to it,
  // unless the call must be answered now. A request of some bytes is answered with up to 100 KB, so
  // a peer that asks without pause is answered as often as there is something new.
  std::shared_ptr<const Snapshot> GetNew(DoorCall& call) const;

 private:
  const ServerView& view_;
  const std::function<DeskCounters::Sums()> sums_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards all below; not held while a report is collected
  mutable std::shared_ptr<const Snapshot> latest_;  // null at first
  mutable uint64_t version_ = 0;                    // of the view, before latest_ was collected
  mutable BootMs until_;
  mutable uint64_t collected_ = 0;
};

}  // namespace firn::front
