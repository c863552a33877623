#include <string>
#include <vector>

#include "registry/operate/audit.h"

namespace firn {

Status ReadPast(BlockingCoordinator& registry, Audit& audit) {
  std::vector<AuditedSlot*> slots;
  std::vector<std::string> paths;
  for (AuditedSlot& slot : audit.slots) {
    if (slot.use == SlotUse::kNeverUsed) continue;
    slots.push_back(&slot);
    paths.push_back(PastPath(slot.slot));
  }
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  for (size_t i = 0; i < slots.size(); ++i) {
    const Code code = nodes[i].code();
    if (code == Code::kNotFound || code == Code::kCorrupt) continue;
    FIRN_TRY(nodes[i].status());
    if (auto past = PastHolders::Parse(nodes[i]->data); past.ok()) slots[i]->past = past->holders();
  }
  return {};
}

}  // namespace firn
