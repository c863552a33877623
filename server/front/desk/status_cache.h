#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "common/base/units.h"
#include "common/time/clock.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/desk/server_view.h"

namespace firn::front {

// The server's report for status calls, collected once for all that ask at about the same time.
// Anybody may ask, and to collect it from thousands of tags takes milliseconds. Thread-safe.
class StatusCache {
 public:
  // What one status answer is made of. Never changed, so each door encodes it once.
  struct Snapshot {
    ServerReport report;
    DeskCounters::Sums sums;
  };

  // All must outlive it. `sums`: what all desks have counted.
  StatusCache(const ServerView& view, std::function<DeskCounters::Sums()> sums, const Clock& clock);

  // Returns the latest report. It is collected again when the view's version has changed, and when
  // its time is over: 0.25 ms for each tag that it shows, from 5 ms to 250 ms.
  std::shared_ptr<const Snapshot> Get() const;

 private:
  const ServerView& view_;
  const std::function<DeskCounters::Sums()> sums_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards all below; not held while a report is collected
  mutable std::shared_ptr<const Snapshot> latest_;  // null at first
  mutable uint64_t version_ = 0;                    // of the view, before latest_ was collected
  mutable BootMs until_;
};

}  // namespace firn::front
