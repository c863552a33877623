#pragma once

#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/slot.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

inline constexpr size_t kReservedForBytesMax = 200;

// Reserves each of them, `what_for` in words; one that is reserved already gets the new words.
// kConflict, and nothing is done for this one and those after it: a Firn server has ever held it,
// so its ids may be out up to the bound and the other system's beside them; or it was retired.
// kNotFound: the cluster has no such machine id. Blocks.
Status ReserveSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots,
                    const std::string& what_for);

// Lets Firn claim them. Its ids of such a machine id begin `ahead` after now, the later of `now`
// and the registry's clock: whatever the other system issued must lie below that, and it must have
// stopped. kConflict: one is not reserved. Blocks.
Status ReleaseSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots, WallMs now,
                    Milliseconds ahead);

}  // namespace firn
