#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/operate/audit.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A slot as read once, and its faults, one sentence each.
struct SlotLook {
  AuditedSlot slot;
  std::vector<std::string> faults{};
};

// Pure. `slot` identifies the slot; `floor` is the cluster's; bounds are compared with `now`.
SlotLook InspectSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                     WallMs floor, WallMs now);

}  // namespace firn
