#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/lease_share.h"
#include "registry/operate/audit_server.h"
#include "registry/operate/auditor.h"
#include "registry/state/owner.h"

namespace firn {
namespace {

std::string RetireOf(MachineId machine) {
  return PrintCommand(PrintedCommand::kRestore, {Cat("--set=retire=", machine.value())});
}

// The owner's name without its last part, which names one state folder: application and address.
std::string ServerOf(const SlotRecord& record) {
  return record.owner.substr(0, record.owner.rfind('.'));
}

}  // namespace

// After creation or a restore, all racks have the same workers, from 0 on.
void Auditor::CompareRacks() {
  std::map<uint32_t, std::set<uint32_t>> racks;
  uint32_t workers = 0;
  for (const AuditedSlot& slot : audit_.slots) {
    racks[slot.slot.rack].insert(slot.slot.worker);
    workers = std::max(workers, slot.slot.worker + 1);
  }
  if (!split_.has_value()) return;
  if (workers == 0) return Missing(AskForRestore("there are no slots"));
  for (uint32_t rack = 0; rack < split_->racks(); ++rack) {
    const std::set<uint32_t>& there = racks[rack];
    if (there.size() == workers) continue;
    uint32_t first = 0;
    while (there.count(first) != 0) ++first;
    Missing(AskForRestore(Cat("rack ", rack, ": ", workers - there.size(), " of ", workers,
                              " records are missing, the first is worker ", first, "'s")));
  }
}

void Auditor::CompareNonces() {
  std::map<Nonce, Slot> seen;
  for (const AuditedSlot& slot : audit_.slots) {
    if (slot.record.nonce.zero() || slot.record.retired) continue;
    const auto [first, added] = seen.emplace(slot.record.nonce, slot.slot);
    if (added) continue;
    Fault(Urgency::kData, SlotText(slot.slot) + " has the same nonce as " + SlotText(first->second),
          RetireOf(slot.machine));
  }
}

// A killed process's report stays until its session ends, and may contradict its successor's.
bool Auditor::IsPresent(size_t provider) const {
  return created_[provider] == latest_.at(audit_.providers[provider].provider.address);
}

void Auditor::Ask() {
  if (!ask_) return;
  std::vector<size_t> present;
  std::vector<AuditedProvider> servers;
  for (size_t i = 0; i < audit_.providers.size(); ++i) {
    if (!IsPresent(i)) continue;
    present.push_back(i);
    servers.push_back(audit_.providers[i]);
  }
  const std::vector<Result<std::string>> answers = ask_(servers);
  for (size_t i = 0; i < present.size() && i < answers.size(); ++i) {
    AuditedProvider& server = audit_.providers[present[i]];
    Status heard =
        answers[i].ok() ? TakeStatus(*answers[i], server, audit_.findings) : answers[i].status();
    audit_.asked.push_back({server.provider.address, std::move(heard)});
  }
}

AuditedSlot* Auditor::SlotOf(MachineId machine) {
  for (AuditedSlot& slot : audit_.slots) {
    if (slot.machine == machine) return &slot;
  }
  return nullptr;
}

void Auditor::CountForLeases() {
  if (!audit_.meta) return;
  const WallMs now = audit_.ClusterTimeAt(now_);
  constexpr int64_t kLargePart = 90;  // servers need the rest
  const int64_t part = audit_.settings.LeaseShareUnder(*audit_.meta);
  std::map<uint32_t, std::vector<const AuditedSlot*>> racks;  // by worker
  for (const AuditedSlot& slot : audit_.slots) racks[slot.slot.rack].push_back(&slot);
  for (const auto& [rack, slots] : racks) {
    LeaseShare share;
    const size_t others = slots.size() - SlotsForLeases(slots.size(), part);
    for (size_t i = others; i < slots.size(); ++i) {
      if (slots[i]->use != SlotUse::kUnreadable) share.Add(slots[i]->record, now);
    }
    if (!share.IsShort()) continue;
    std::string fix = "let programs take ids from the servers";
    if (part < kLargePart) {
      const std::string larger = Cat("lease_share=", std::min(part + 20, kLargePart));
      fix += ", or give leases a greater share: " + PrintCommand(PrintedCommand::kSet, {larger});
    }
    Fault(Urgency::kSoon,
          Cat("rack ", rack, ": ", share.free, " of ", share.usable,
              " machine ids for leases are free"),
          std::move(fix));
  }
}

// Programs with a lease have no live node. A server that runs again may need fewer machine ids.
void Auditor::CountAbsent() {
  std::set<MachineId> reported;
  for (const AuditedProvider& server : audit_.providers) {
    for (const HeldMachine& held : server.report.Held()) reported.insert(held.machine);
  }
  std::set<std::string> running;
  for (const AuditedSlot& slot : audit_.slots) {
    if (slot.use == SlotUse::kHeld) running.insert(ServerOf(slot.record));
  }
  for (AuditedSlot& slot : audit_.slots) {
    const SlotRecord& record = slot.record;
    slot.left = slot.use == SlotUse::kUnattended && !record.lease &&
                !reported.contains(slot.machine) && !running.contains(ServerOf(record));
    if (!slot.left) continue;
    // Another server can claim it once the cluster's time has reached its bound.
    const Milliseconds ahead = std::max(record.bound - audit_.ClusterTimeAt(now_), Milliseconds(0));
    Fault(Urgency::kSoon,
          Cat(SlotText(slot.slot), ": its holder, ", FormatOwner(record.owner), " on ", record.host,
              ", has left without giving it back, or is cut off; it is free from ",
              FormatRfc3339(now_ + ahead)),
          "start that server again, or check its connection to the registry");
  }
}

Status Auditor::CompareProviders() {
  std::map<MachineId, std::string> seen;
  for (size_t i = 0; i < audit_.providers.size(); ++i) {
    const AuditedProvider& audited = audit_.providers[i];
    if (IsPresent(i)) JudgeServer(audited, now_, audit_);
    for (const HeldMachine& held : audited.report.Held()) {
      const std::string& address = audited.provider.address;
      const auto [first, added] = seen.emplace(held.machine, address);
      // With the same address, the other node is a killed process's, until its session ends.
      if (!added && first->second != address) {
        Fault(
            Urgency::kData,
            Cat(address, " and ", first->second, " both report machine id ", held.machine.value()),
            "find the copy of the state folder, stop its server, then restore");
      }
      FIRN_TRY(CompareHeld(audited, held));
    }
  }
  return {};
}

// An apparent fault is read again: the nodes may have changed between the reads. A server that has
// released its machine id meanwhile does not report it any more.
Status Auditor::CompareHeld(const AuditedProvider& audited, const HeldMachine& held) {
  const std::string& address = audited.provider.address;
  AuditedSlot* const slot = SlotOf(held.machine);
  if (slot == nullptr) {
    Loss(
        Cat(address, " reports machine id ", held.machine.value(), ", for which there is no slot"));
    return {};
  }
  slot->clock_skew_ms = audited.report.clock_skew_ms;
  if (held.bound <= slot->record.bound && !ClaimedByAnother(address, held.bound, *slot)) return {};
  FIRN_ASSIGN(const auto report, ReportOf(ProviderNodeName(audited.provider)));
  const auto bound = report.has_value() ? report->BoundOf(held.machine) : std::nullopt;
  if (!bound) return {};
  FIRN_ASSIGN(const auto look, LookAgain(slot->slot));
  if (look.has_value()) CompareAgain(address, *bound, look->slot);
  return {};
}

bool Auditor::ClaimedByAnother(const std::string& address, WallMs bound,
                               const AuditedSlot& slot) const {
  // A claim that begins at or above its bound does not overlap.
  if (bound <= std::max(now_, slot.record.since)) return false;
  return slot.live.has_value() && slot.live->endpoint != address;
}

void Auditor::CompareAgain(const std::string& address, WallMs bound, const AuditedSlot& slot) {
  const std::string holds =
      Cat(address, " holds machine id ", slot.machine.value(), " until ", FormatRfc3339(bound));
  // A floor above the bound: the cluster was restored, above all times that the server may use.
  if (bound > std::max(slot.record.bound, audit_.meta->floor)) {
    Loss(Cat(holds, ", but its record says ", FormatRfc3339(slot.record.bound),
             ": the registry went back in time"));
  }
  // The server's own bound is ahead: until it notices, both may issue the same ids.
  if (ClaimedByAnother(address, bound, slot)) {
    Fault(Urgency::kData,
          Cat(holds, ", and ", slot.live->endpoint, " (", FormatOwner(slot.record.owner),
              ") has claimed it from ", FormatRfc3339(slot.record.since),
              " on: ids of the time in between may be duplicated"),
          Cat("stop ", address, ", and look up the process that issued an id (`who`)"));
  }
}

}  // namespace firn
