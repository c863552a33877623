#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/operate/audit.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A slot as read once, and what is wrong with it.
struct SlotAudit {
  AuditedSlot slot;
  std::vector<AuditFinding> findings{};
};

// Pure. `slot` identifies the slot; `floor` is the cluster's; bounds are compared with `now`.
SlotAudit InspectSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                      WallMs floor, WallMs now);

}  // namespace firn
