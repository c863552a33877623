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

// The server's report for status calls, collected once for all callers of about the same time:
// every client may call status, and collecting a report of thousands of tags takes milliseconds.
// Thread-safe.
class StatusCache {
 public:
  // How long a call of GetNew is parked before it asks again.
  static constexpr std::chrono::milliseconds kAskAgain{5};

  // The content of one status answer. Immutable, so each protocol encodes it once.
  struct Snapshot {
    ServerReport report;
    DeskCounters::Sums sums;
    uint64_t number;  // 1, 2, 3, ... in the order of collection
  };

  // All must outlive it. `sums` returns the counts of all desks.
  StatusCache(const ServerView& view, std::function<DeskCounters::Sums()> sums, const Clock& clock);

  // Returns the latest report. It is collected again if the view's version has changed, or after
  // its lifetime: 0.25 ms for each tag in it, from 5 ms to 250 ms.
  std::shared_ptr<const Snapshot> Get() const;

  // Like Get, but each report once on a connection: returns null while the latest was already sent,
  // unless the call must be answered now. The answer to a short request has up to 100 KB, so a peer
  // that asks without pause is answered only when there is a new report.
  std::shared_ptr<const Snapshot> GetNew(DoorCall& call) const;

 private:
  const ServerView& view_;
  const std::function<DeskCounters::Sums()> sums_;
  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the members below; not held while a report is collected
  mutable std::shared_ptr<const Snapshot> latest_;  // null at first
  mutable uint64_t version_ = 0;                    // of the view, read before latest_ was
                                                    // collected
  mutable BootMs until_;
  mutable uint64_t collected_ = 0;
};

}  // namespace firn::front
