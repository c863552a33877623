#pragma once

#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/slot.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

inline constexpr size_t kReservedForBytesMax = 200;

// Both functions expect each slot once, check all slots before they write, and write many at once.
// After a partial failure, which says how many are done, repeat the call. Both block.

// Reserves the slots; `what_for` names the other system, and replaces an earlier name. kConflict,
// and nothing is done: a Firn server has held one of them, so its ids up to the bound may equal the
// other system's; or one was retired. kNotFound: the cluster has no such machine id.
//
Status ReserveSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots,
                    const std::string& what_for);

// Lets Firn claim the slots. Firn's ids of these machine ids begin `ahead` after now, the later of
// `now` and the registry's clock. The other system must have stopped, and its ids must all be below
// that. Slots that are not reserved are skipped. kConflict: none of them is reserved, or one was
// retired.
Status ReleaseSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots, WallMs now,
                    Milliseconds ahead);

}  // namespace firn
