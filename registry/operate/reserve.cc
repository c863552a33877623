#include "registry/operate/reserve.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/reserved.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

struct SlotAsRead {
  SlotRecord record{};
  int64_t version = 0;
};

Result<SlotAsRead> ReadSlot(BlockingCoordinator& registry, Slot slot) {
  const Result<Node> node = registry.Read(SlotPath(slot));
  if (node.code() == Code::kNotFound) return NotFound("the cluster has no " + SlotText(slot));
  if (!node.ok()) return node.status().WithContext(SlotText(slot));
  if (node->stat.version == kUnguardedVersion) {
    return Conflict(RestsUnguarded("the record of " + SlotText(slot)));
  }
  SlotAsRead read{.version = node->stat.version};
  FIRN_ASSIGN(read.record, ParseSlotRecord(node->data));
  return read;
}

// Over the version that was read: whoever claims it at the same time is first, or we are.
Status Put(BlockingCoordinator& registry, const Nonce& era, Slot slot, const SlotAsRead& read) {
  std::vector<Write> writes;
  AddSet(writes, SlotPath(slot), FormatSlotRecord(read.record), read.version);
  writes.push_back(EraCheck(era));
  return registry.Multi(std::move(writes)).status.WithContext(SlotText(slot));
}

Status MayBeReserved(Slot slot, const SlotRecord& record) {
  if (IsReserved(record)) return {};
  if (record.retired) return Conflict(SlotText(slot) + " is out of use for ever");
  if (record.owner.empty() && record.nonce.zero()) return {};
  return Conflict(Cat(SlotText(slot), " was claimed by ", record.owner, ", up to ",
                      FormatRfc3339(record.bound),
                      ": the other system's ids of it may be the same as ours"));
}

Result<MetaAsRead> Unfrozen(BlockingCoordinator& registry) {
  FIRN_ASSIGN(MetaAsRead stands, ReadMeta(registry));
  if (!stands.meta.frozen) return stands;
  return Conflict("the cluster is frozen: " + stands.meta.reason + "; run firn restore first");
}

// Setting the node is what tells the registry's own time.
Result<WallMs> RegistryTime(BlockingCoordinator& registry) {
  FIRN_TRY(registry.Multi({Write::Set(kClockPath, "", Write::kAnyVersion)}).status);
  FIRN_ASSIGN(const Node clock, registry.Read(kClockPath));
  return clock.stat.modified;
}

}  // namespace

Status ReserveSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots,
                    const std::string& what_for) {
  if (what_for.empty() || what_for.size() > kReservedForBytesMax) {
    return Invalid(Cat("say in 1 to ", kReservedForBytesMax, " bytes for whom it is reserved"));
  }
  FIRN_ASSIGN(const MetaAsRead stands, Unfrozen(registry));
  for (const Slot slot : slots) {
    FIRN_ASSIGN(SlotAsRead read, ReadSlot(registry, slot));
    FIRN_TRY(MayBeReserved(slot, read.record));
    read.record.retired = true;
    read.record.owner = std::string(kReservedPrefix) + what_for;
    FIRN_TRY(Put(registry, stands.meta.era, slot, read));
  }
  return {};
}

Status ReleaseSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots, WallMs now,
                    Milliseconds ahead) {
  FIRN_ASSIGN(const MetaAsRead stands, Unfrozen(registry));
  FIRN_ASSIGN(const WallMs there, RegistryTime(registry));
  const WallMs begin = std::max(now, there) + ahead;
  for (const Slot slot : slots) {
    FIRN_ASSIGN(SlotAsRead read, ReadSlot(registry, slot));
    if (!IsReserved(read.record)) return Conflict(SlotText(slot) + " is not reserved");
    read.record.retired = false;
    read.record.owner.clear();
    // What lies below is used up, as below any bound.
    read.record.bound = read.record.since = std::max(begin, read.record.bound);
    FIRN_TRY(Put(registry, stands.meta.era, slot, read));
  }
  return {};
}

}  // namespace firn
