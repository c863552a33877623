#include "registry/operate/audit_slot.h"

#include <utility>

#include "registry/claim/claim_options.h"
#include "registry/cluster/reserved.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

SlotUse UseOf(const SlotRecord& record, bool live, WallMs now) {
  if (IsReserved(record)) return SlotUse::kReserved;
  if (record.retired) return SlotUse::kRetired;
  if (record.never_used()) return SlotUse::kNeverUsed;
  if (record.bound - now > kPoisonAhead) return SlotUse::kPoisoned;
  if (record.nonce.zero()) return SlotUse::kReleased;
  if (record.bound <= now) return SlotUse::kPassed;
  return live ? SlotUse::kHeld : SlotUse::kUnattended;
}

void ReadLive(const Node& node, SlotLook& look) {
  const Result<LiveMark> live = ParseLiveMark(node.data);
  if (live.ok()) {
    look.slot.live = *live;
  } else {
    look.faults.push_back("its live node cannot be read: " + live.status().message());
  }
  if (node.stat.ephemeral_owner == 0) {
    look.faults.push_back("its live node is not ephemeral and will never disappear");
  }
}

// The contents of a retired record do not matter any more.
void JudgeRecord(SlotLook& look, WallMs floor) {
  const SlotRecord& record = look.slot.record;
  if (record.retired) return;
  if (look.slot.use == SlotUse::kPoisoned) {
    look.faults.push_back("its bound is more than a day ahead");
  }
  if (record.since > record.bound) look.faults.push_back("its claim begins beyond its bound");
  // A restore sets the floor above every bound, and ends renewals of earlier claims.
  if (record.since < floor && record.bound > floor) {
    look.faults.push_back("its claim began below the floor and reaches above it");
  }
}

void JudgeLive(SlotLook& look) {
  const AuditedSlot& slot = look.slot;
  if (!slot.live.has_value()) return;
  if (slot.live->nonce != slot.record.nonce) {
    look.faults.push_back("its live node belongs to another claim than its record");
  }
  if (slot.use == SlotUse::kPassed) {
    look.faults.push_back(slot.record.owner + " is live but its bound has passed: it cannot renew");
  }
  if (slot.record.retired) look.faults.push_back("it was retired and is live");
}

}  // namespace

std::string_view SlotUseName(SlotUse use) {
  switch (use) {
    case SlotUse::kNeverUsed:
      return "never used";
    case SlotUse::kHeld:
      return "held";
    case SlotUse::kUnattended:
      return "unattended";
    case SlotUse::kPassed:
      return "passed";
    case SlotUse::kReleased:
      return "released";
    case SlotUse::kRetired:
      return "retired";
    case SlotUse::kReserved:
      return "reserved";
    case SlotUse::kPoisoned:
      return "poisoned";
    case SlotUse::kUnreadable:
      return "unreadable";
  }
  return "unknown";
}

SlotLook InspectSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                     WallMs floor, WallMs now) {
  SlotLook look{.slot = std::move(slot)};
  look.slot.version = record.stat.version;
  if (look.slot.rests_unguarded()) look.faults.push_back(RestsUnguarded("its record"));
  if (live.has_value()) ReadLive(*live, look);
  const Result<SlotRecord> read = ParseSlotRecord(record.data);
  if (!read.ok()) {
    look.faults.push_back(read.status().message());
    return look;
  }
  look.slot.record = *read;
  look.slot.use = UseOf(*read, look.slot.live.has_value(), now);
  JudgeRecord(look, floor);
  JudgeLive(look);
  return look;
}

}  // namespace firn
