#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "registry/operate/restore_policy.h"

namespace firn {

inline constexpr char kRestoredUuid[] = "5f1c2f9e-7d8a-4a53-9d9a-1b6f1a2b3c4d";
inline constexpr WallMs kRestoredAt{1'750'000'000'000};
inline constexpr Milliseconds kRestoreWindow{600'000};

inline TagDefinition LedgerTag(const std::string& name, int64_t high) {
  return {.name = name, .strategy = "segment", .step = 50, .step_max = 400, .high = high};
}

inline TagNode SavedTag(TagDefinition tag) { return {.tag = std::move(tag)}; }
inline StoredTag TagInRegistry(TagDefinition tag) {
  return {.node = SavedTag(std::move(tag)), .stat = {}};
}

inline AuditedSlot AuditedSlotOf(uint32_t machine, bool retired) {
  AuditedSlot slot;
  slot.slot = {0, machine};
  slot.machine = MachineId(machine);
  slot.record.retired = retired;
  return slot;
}

// A cluster that was restored a minute ago, with the floor that a restore sets, and a server.
// Machine id 0 is retired, machine id 1 is not.
struct RestoredCluster {
  RestoredCluster() {
    audit.meta.emplace();
    audit.meta->uuid = kRestoredUuid;
    audit.meta->layout = "firn";
    audit.meta->floor = kRestoredAt + 3 * kRestoreWindow + Milliseconds(10'000);
    audit.meta_set_at = kRestoredAt;
    audit.slots = {AuditedSlotOf(0, true), AuditedSlotOf(1, false)};
    audit.providers.emplace_back();
  }

  bool Covers() const { return FloorCovers(audit, facts); }

  Audit audit;
  RestoreFacts facts{.now = kRestoredAt + Milliseconds(60'000), .window = kRestoreWindow};
};

}  // namespace firn
