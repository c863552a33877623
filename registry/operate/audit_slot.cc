#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/reserved.h"
#include "registry/operate/auditor.h"
#include "registry/seam/node_version.h"
#include "registry/state/owner.h"

namespace firn {
namespace {

constexpr bool kRestores = true;
constexpr char kRestartHolder[] =
    "run the command again; if it stays, restart the server that holds the machine id";

std::string RetireOf(const SlotAudit& look) {
  return PrintCommand(PrintedCommand::kRestore, {Cat("--set=retire=", look.slot.machine.value())});
}

// The holder of a claim from before the last restore may issue until the clocks pass its bound.
SlotUse UseOf(const SlotRecord& record, bool live, const Audit& audit, WallMs now) {
  const WallMs time = record.since < audit.meta->floor ? now : audit.ClusterTimeAt(now);
  if (IsReserved(record)) return SlotUse::kReserved;
  if (record.retired) return SlotUse::kRetired;
  if (record.never_used()) return SlotUse::kNeverUsed;
  if (record.bound - audit.HighestTimeAt(now) > kPoisonAhead) return SlotUse::kPoisoned;
  if (record.nonce.zero()) return SlotUse::kReleased;
  if (record.bound <= time) return SlotUse::kPassed;
  return live ? SlotUse::kHeld : SlotUse::kUnattended;
}

void ReadLive(const Node& node, SlotAudit& look) {
  const Result<LiveMark> live = ParseLiveMark(node.data);
  if (live.ok()) {
    look.slot.live = *live;
  } else {
    look.findings.push_back({Urgency::kSoon,
                             "its live node cannot be read: " + live.status().message(),
                             kRestartHolder});
  }
  if (node.stat.ephemeral_owner == 0) {
    look.findings.push_back({Urgency::kSoon,
                             "its live node is not ephemeral and will never disappear",
                             "delete that node after its server has stopped"});
  }
}

// The contents of a retired record do not matter any more.
void JudgeRecord(SlotAudit& look, WallMs floor) {
  const SlotRecord& record = look.slot.record;
  if (record.retired) return;
  if (look.slot.use == SlotUse::kPoisoned) {
    look.findings.push_back({Urgency::kData, "its bound is more than a day ahead", {}, kRestores});
  }
  if (record.since > record.bound) {
    look.findings.push_back({Urgency::kData, "its claim begins beyond its bound", RetireOf(look)});
  }
  // A restore sets the floor above every bound, and ends renewals of earlier claims.
  if (record.since < floor && record.bound > floor) {
    look.findings.push_back({Urgency::kData, "its claim began below the floor and reaches above it",
                             PrintCommand(PrintedCommand::kRestore, {"--again"})});
  }
}

void JudgeLive(SlotAudit& look) {
  const AuditedSlot& slot = look.slot;
  if (!slot.live.has_value()) return;
  if (slot.live->nonce != slot.record.nonce) {
    look.findings.push_back(
        {Urgency::kSoon, "its live node belongs to another claim than its record", kRestartHolder});
  }
  if (slot.use == SlotUse::kPassed) {
    look.findings.push_back(
        {Urgency::kRefused,
         FormatOwner(slot.record.owner) + " is live but its bound has passed: it cannot renew",
         "read its log and /readyz, which name the reason"});
  }
  if (slot.record.retired) {
    look.findings.push_back({Urgency::kData, "it was retired and is live",
                             "if it stays for a minute, stop that server"});
  }
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

SlotAudit InspectSlot(AuditedSlot slot, const Node& record, const std::optional<Node>& live,
                      const Audit& audit, WallMs now) {
  SlotAudit look{.slot = std::move(slot)};
  look.slot.version = record.stat.version;
  if (look.slot.rests_unguarded()) {
    look.findings.push_back({Urgency::kData, UnguardedVersionFault("its record"), {}, kRestores});
  }
  if (live.has_value()) ReadLive(*live, look);
  const Result<SlotRecord> read = ParseSlotRecord(record.data);
  if (!read.ok()) {
    look.findings.push_back({Urgency::kData, read.status().message(), {}, kRestores});
    return look;
  }
  look.slot.record = *read;
  look.slot.use = UseOf(*read, look.slot.live.has_value(), audit, now);
  JudgeRecord(look, audit.meta->floor);
  JudgeLive(look);
  return look;
}

}  // namespace firn
