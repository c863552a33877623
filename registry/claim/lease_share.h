#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/units.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/records.h"

namespace firn {

// Returns how many of a rack's slots are for leases: those with the highest workers. `lease_share`
// is the root node's, in percent.
constexpr size_t SlotsForLeases(size_t slots, int64_t lease_share) {
  return slots * static_cast<size_t>(lease_share) / 100;
}

// The count of a rack's machine ids for leases. The warning of `firn audit` and the metrics of a
// server are both this value.
struct LeaseShare {
  size_t usable = 0;    // not reserved or retired, and with a bound that is not absurd
  size_t free = 0;      // of these
  bool leased = false;  // one of the records names a lease

  // Adds a slot for leases, by its record as read at `now`, the cluster's time (ClusterTime).
  // Unreadable records do not count.
  void Add(const SlotRecord& record, WallMs now) {
    leased = leased || record.lease.has_value();
    if (record.retired || record.bound - now > kPoisonAhead) return;
    ++usable;
    if (record.bound <= now) ++free;
  }

  // Whether programs will soon get no lease: fewer than one in ten are free.
  bool IsShort() const { return leased && free * 10 < usable; }
};

}  // namespace firn
