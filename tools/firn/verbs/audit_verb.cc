#include <iostream>
#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "registry/claim/claim_checks.h"
#include "registry/operate/audit.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/restore_command.h"
#include "registry/state/owner.h"
#include "tools/firn/admin_ports.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/table.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_bool(all, false, "Include machine ids that were never used, or retired tags.");
DEFINE_bool(watch, false, "Repeat until interrupted.");

namespace firn {
namespace {

constexpr std::chrono::seconds kWatchInterval{2};

// Returns the time from now to `t` as a text: "in 9m 58s" or "12s ago".
std::string Distance(WallMs t, WallMs now) {
  const int64_t seconds = std::chrono::abs(t - now).count() / 1000;
  std::string text = Cat(seconds % 60, "s");
  if (seconds >= 60) text = Cat(seconds / 60 % 60, "m ", text);
  if (seconds >= 3600) text = Cat(seconds / 3600, "h ", text);
  return t > now ? "in " + text : text + " ago";
}

// Returns the difference of a clock from the registry's: "1 h ahead" or "20 ms behind".
std::string SkewText(Milliseconds skew) {
  if (skew == Milliseconds(0)) return "none";
  return DurationText(std::chrono::abs(skew)) + (skew > Milliseconds(0) ? " ahead" : " behind");
}

std::string RepairText(const Audit& audit) {
  if (audit.Losses() == 0) return {};
  const std::string command = RepairCommand(audit, RestorePlace());
  if (command.empty()) {
    return "The log of a running server, and `trouble` in its /v1/status, contain the whole " +
           PrintCommand(PrintedCommand::kRestore) + " command.\n";
  }
  return "To repair it:\n  " + command + "\n";
}

std::string PartitionsText(const Audit& audit) {
  Table table({"PARTITION", "OWNER", "SINCE", "TAGS"});
  for (const AuditedPartition& partition : audit.partitions) {
    const bool owned = !partition.owner.empty();
    const size_t more = partition.tags.size() - 1;
    table.Add(
        {std::to_string(partition.partition), owned ? partition.owner : "-",
         owned ? FormatRfc3339(partition.since) : "-",
         more == 0 ? partition.tags.front() : Cat(partition.tags.front(), " and ", more, " more")});
  }
  return audit.partitions.empty() ? "" : table.Text();
}

std::string AuditText(const Audit& audit, WallMs now, bool all) {
  std::string text;
  if (audit.meta) {
    text += "cluster " + audit.meta->uuid + ", layout " + audit.meta->layout;
    if (audit.meta->floor > WallMs()) text += ", floor " + FormatRfc3339(audit.meta->floor);
    text += audit.meta->frozen ? ", FROZEN: " + audit.meta->reason + "\n" : "\n";
  }
  Table table({"MACHINE", "WORKER", "RACK", "USE", "OWNER", "HOST", "BOUND", "SKEW", "NONCE"});
  size_t unused = 0;
  for (const AuditedSlot& slot : audit.slots) {
    if (slot.use == SlotUse::kNeverUsed && !all) {
      ++unused;
      continue;
    }
    const bool bounded = slot.record.bound > WallMs();
    table.Add({std::to_string(slot.machine.value()), std::to_string(slot.slot.worker),
               std::to_string(slot.slot.rack), std::string(SlotUseName(slot.use)),
               slot.record.owner.empty() ? "-" : FormatOwner(slot.record.owner),
               slot.record.host.empty() ? "-" : slot.record.host,
               bounded ? Distance(slot.record.bound, now) : "-",
               slot.clock_skew_ms ? SkewText(Milliseconds(*slot.clock_skew_ms)) : "-",
               slot.record.nonce.text().substr(0, 8)});
  }
  text += table.Text();
  if (unused > 0) {
    const WallMs began = audit.RecordsBegan();
    const std::string since =
        began == WallMs() ? "" : Cat(" since ", FormatRfc3339(began), ", when their records begin");
    text += Cat(unused, " machine ids were never used", since, "\n");
  }
  text += PartitionsText(audit);
  const std::vector<std::string> faults = audit.Faults();
  for (const std::string& fault : faults) text += "WRONG: " + fault + "\n";
  text += RepairText(audit);
  for (const std::string& note : audit.Notes()) text += "NOTE: " + note + "\n";
  text += AskedText(audit);
  if (faults.empty()) text += "nothing is wrong\n";
  return text;
}

// `all`: includes machine ids that were never used.
Result<Output> RunOnce(BlockingCoordinator& registry, bool all) {
  const WallMs now = SystemClock().Wall();
  FIRN_ASSIGN(const Audit audit, ReadAudit(registry, now, AskAdminPorts));
  return Output{.json = AuditJson(audit, all, RepairCommand(audit, RestorePlace())),
                .text = AuditText(audit, now, all),
                .wrong = !audit.Faults().empty()};
}

Result<Output> RunAudit(const std::vector<std::string>& words) {
  if (!words.empty()) return Invalid("audit takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  while (FLAGS_watch) {
    FIRN_ASSIGN(const Output output, RunOnce(session.registry(), FLAGS_all));
    std::cout << "\n" << FormatRfc3339(SystemClock().Wall()) << "\n" << output.text << std::flush;
    SleepFor(kWatchInterval);
  }
  return RunOnce(session.registry(), FLAGS_all);
}

}  // namespace

Verb AuditVerb() {
  return {.name = "audit",
          .summary = "shows each machine id with its owner and bound, and every fault",
          .details =
              "A bound is the time until which a machine id is granted. A running owner extends "
              "it.\nFor tags with buffer=owner, it also shows which server owns their numbers, and "
              "since "
              "when.\nExit code 1 if there are faults.\n",
          .flags = {FIRN_REGISTRY_FLAGS, FIRN_ADMIN_FLAGS, "all", "watch"},
          .run = RunAudit};
}

}  // namespace firn
