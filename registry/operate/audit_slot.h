#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/operate/audit.h"
#include "registry/seam/coordinator.h"

namespace firn {

// What one look at a slot showed, and what is wrong with it, a sentence each.
struct SlotLook {
  AuditedSlot slot;
  std::vector<std::string> faults{};
};

// Pure. `slot` says which one; `floor` is the cluster's, and `now` decides what lies ahead.
SlotLook LookAtSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                    WallMs floor, WallMs now);

}  // namespace firn
