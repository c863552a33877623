#pragma once

#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/slot.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

inline constexpr size_t kReservedForBytesMax = 200;

// Both name each slot once, look at all of them before they write any, and write many at once. A
// run that ends half way says how many are done; the same call does the others. They block.

// Reserves each of them, `what_for` in words; one that is reserved already gets the new words.
// kConflict, and nothing is done: a Firn server has ever held one, so its ids may be out up to the
// bound and the other system's beside them; or it was retired. kNotFound: the cluster has no such
// machine id.
Status ReserveSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots,
                    const std::string& what_for);

// Lets Firn claim them. Its ids of such a machine id begin `ahead` after now, the later of `now`
// and the registry's clock: whatever the other system issued must lie below that, and it must have
// stopped. Those that are Firn's already are passed over. kConflict: all of them are, or one was
// retired.
Status ReleaseSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots, WallMs now,
                    Milliseconds ahead);

}  // namespace firn
