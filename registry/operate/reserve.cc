#include "registry/operate/reserve.h"

#include <algorithm>
#include <span>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/reserved.h"
#include "registry/seam/node_version.h"
#include "registry/state/owner.h"

namespace firn {
namespace {

// Each write must finish within the coordinator's time limit, also in a directory on a busy disk.
constexpr size_t kSlotsInOneWrite = 64;

struct SlotAsRead {
  Slot slot;
  SlotRecord record{};
  int64_t version = 0;
};

Result<SlotAsRead> Understood(Slot slot, const Result<Node>& node) {
  if (node.code() == Code::kNotFound) return NotFound("the cluster has no " + SlotText(slot));
  if (!node.ok()) return node.status().WithContext(SlotText(slot));
  if (node->stat.version == kUnguardedVersion) {
    return Conflict(UnguardedVersionFault("the record of " + SlotText(slot)));
  }
  SlotAsRead read{.slot = slot, .version = node->stat.version};
  FIRN_ASSIGN(read.record, ParseSlotRecord(node->data));
  return read;
}

Result<std::vector<SlotAsRead>> ReadSlots(BlockingCoordinator& registry,
                                          const std::vector<Slot>& slots) {
  std::vector<std::string> paths;
  for (const Slot slot : slots) paths.push_back(SlotPath(slot));
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  std::vector<SlotAsRead> read;
  for (size_t i = 0; i < slots.size(); ++i) {
    FIRN_ASSIGN(SlotAsRead one, Understood(slots[i], nodes[i]));
    read.push_back(std::move(one));
  }
  return read;
}

// Writes over the versions that were read. If a slot is claimed at the same time, either this write
// or the claim fails.
Status PutTogether(BlockingCoordinator& registry, const Nonce& era,
                   std::span<const SlotAsRead> slots) {
  std::vector<Write> writes;
  std::vector<Slot> whose;
  for (const SlotAsRead& one : slots) {
    AddSet(writes, SlotPath(one.slot), FormatSlotRecord(one.record), one.version);
    whose.resize(writes.size(), one.slot);
  }
  writes.push_back(EraCheck(era));
  // Servers watch this node, and then read again which machine ids are reserved.
  writes.push_back(Write::Set(kMachinesPath, "", Write::kAnyVersion));
  const WriteOutcome outcome = registry.Multi(std::move(writes));
  const auto failed = static_cast<size_t>(outcome.failed);
  if (outcome.failed < 0 || failed >= whose.size()) return outcome.status;
  return outcome.status.WithContext(SlotText(whose[failed]));
}

Status Put(BlockingCoordinator& registry, const Nonce& era, std::span<const SlotAsRead> slots) {
  for (size_t done = 0; done < slots.size(); done += kSlotsInOneWrite) {
    const size_t size = std::min(kSlotsInOneWrite, slots.size() - done);
    const Status put = PutTogether(registry, era, slots.subspan(done, size));
    if (put.ok()) continue;
    return done == 0 ? put
                     : put.WithContext(Cat(done, " of ", slots.size(),
                                           " are done; repeat the command for the others"));
  }
  return {};
}

Status MayBeReserved(Slot slot, const SlotRecord& record) {
  if (IsReserved(record)) return {};
  if (record.retired) return Conflict(SlotText(slot) + " is permanently retired");
  if (record.owner.empty() && record.nonce.zero()) return {};
  return Conflict(Cat(SlotText(slot), " was claimed by ", FormatOwner(record.owner), " until ",
                      FormatRfc3339(record.bound),
                      ", so the other system's ids may equal Firn's; reserve another one"));
}

// Slots that are not reserved are skipped, since an earlier call may have failed half way.
Status MayBeReleased(const std::vector<SlotAsRead>& slots) {
  bool any = false;
  for (const SlotAsRead& one : slots) {
    any |= IsReserved(one.record);
    if (one.record.retired && !IsReserved(one.record)) {
      return Conflict(SlotText(one.slot) + " is not reserved, but permanently retired");
    }
  }
  if (any || slots.empty()) return {};
  return Conflict(SlotText(slots.front().slot) + " is not reserved" +
                  (slots.size() > 1 ? ", and neither are the others" : ""));
}

Result<MetaAsRead> Unfrozen(BlockingCoordinator& registry) {
  FIRN_ASSIGN(MetaAsRead stands, ReadMeta(registry));
  if (!stands.meta.frozen) return stands;
  return Conflict(WhyFrozen(stands.meta));
}

// Sets the clock node to read the registry's time.
Result<WallMs> RegistryTime(BlockingCoordinator& registry) {
  FIRN_TRY(registry.Multi({Write::Set(kClockPath, "", Write::kAnyVersion)}).status);
  FIRN_ASSIGN(const Node clock, registry.Read(kClockPath));
  return clock.stat.modified;
}

}  // namespace

Status ReserveSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots,
                    const std::string& what_for) {
  if (what_for.empty() || what_for.size() > kReservedForBytesMax) {
    return Invalid(
        Cat("the name of the other system must have 1 to ", kReservedForBytesMax, " bytes"));
  }
  FIRN_ASSIGN(const MetaAsRead stands, Unfrozen(registry));
  FIRN_ASSIGN(std::vector<SlotAsRead> all, ReadSlots(registry, slots));
  for (SlotAsRead& one : all) {
    FIRN_TRY(MayBeReserved(one.slot, one.record));
    one.record.retired = true;
    one.record.owner = std::string(kReservedPrefix) + what_for;
  }
  return Put(registry, stands.meta.era, all);
}

Status ReleaseSlots(BlockingCoordinator& registry, const std::vector<Slot>& slots, WallMs now,
                    Milliseconds ahead) {
  FIRN_ASSIGN(const MetaAsRead stands, Unfrozen(registry));
  FIRN_ASSIGN(const WallMs there, RegistryTime(registry));
  const WallMs begin = std::max(now, there) + ahead;
  FIRN_ASSIGN(std::vector<SlotAsRead> all, ReadSlots(registry, slots));
  FIRN_TRY(MayBeReleased(all));
  std::erase_if(all, [](const SlotAsRead& one) { return !IsReserved(one.record); });
  for (SlotAsRead& one : all) {
    one.record.retired = false;
    one.record.owner.clear();
    // All earlier times count as used, as below any bound.
    one.record.bound = one.record.since = std::max(begin, one.record.bound);
  }
  return Put(registry, stands.meta.era, all);
}

}  // namespace firn
