#include "tools/firn/restore/restore_report.h"

#include <optional>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/tag_store.h"

namespace firn {
namespace {

std::string TextOf(const RestoredTag& one) {
  const std::string next =
      one.next ? Cat("; its next number is ", *one.next, " or higher\n") : "\n";
  switch (one.how) {
    case RestoredTag::How::kLifted:
      return Cat("tag ", one.tag, " continues at ", *one.next, "\n");
    case RestoredTag::How::kLiftedLate:
      return Cat("tag ", one.tag, " continues at ", *one.next, ", above a later report\n");
    case RestoredTag::How::kNamed:
      return Cat("tag ", one.tag, " exists", next);
    case RestoredTag::How::kDeleted:
      return Cat("tag ", one.tag, " stays deleted: none of its numbers was ever issued\n");
    case RestoredTag::How::kFromBackup:
      return Cat("tag ", one.tag,
                 one.reported ? " is re-created from the backup, above the servers' reports"
                              : " is known from the backup alone",
                 next);
  }
  return {};
}

}  // namespace

void PrintTags(const std::vector<RestoredTag>& tags, bool planned, bool has_backup,
               Output& output) {
  Json lifted = Json::array(), from_backup = Json::array();
  for (const RestoredTag& one : tags) {
    output.text += TextOf(one);
    if (one.how == RestoredTag::How::kFromBackup) from_backup.push_back(one.tag);
    if (one.how != RestoredTag::How::kLifted) continue;
    lifted.push_back({{"tag", one.tag},
                      {"high", std::to_string(*one.next)},
                      {"gap", std::to_string(one.gap)},
                      {"reported", one.reported}});
    if (one.reported || planned) continue;
    output.text +=
        Cat("WARNING: no server reports the ledger of tag ", one.tag, ", so it was raised by ",
            one.gap, " above the ",
            has_backup ? "higher of the registry's and the backup's value" : "registry's value",
            "; if higher numbers may have been issued, raise it further: ",
            PrintCommand(PrintedCommand::kTagsSet, {one.tag, "start=NUMBER"}), "\n");
  }
  output.json["tags"] = std::move(lifted);
  output.json["from_backup"] = std::move(from_backup);
}

void PrintResult(const RestoreReport& report, Output& output) {
  output.json["uuid"] = report.uuid;
  output.json["floor_ms"] = report.floor.ms();
  output.json["root_made"] = report.root_made;
  auto& retired = output.json["retired"] = Json::array();
  for (const Slot& slot : report.retired) {
    retired.push_back(SlotText(slot));
    output.text += "retired " + SlotText(slot) + "\n";
  }
  if (report.root_made) output.text += "tag " + std::string(kFirstTag) + " exists\n";
  output.json["mended"] = report.repaired;
  for (const std::string& path : report.repaired) output.text += "repaired " + path + "\n";
}

void WarnOfUnknown(const RestoreReport& report, const RestoreOptions& options, Output& output) {
  for (const Slot& slot : report.reserved_late) {
    output.wrong = true;
    output.text +=
        "WRONG: " + SlotText(slot) +
        " is reserved again, but a server claimed it in the meantime; compare its ids with those "
        "of the other system\n";
  }
  auto& unknown = output.json["unknown"] = Json::array();
  if (!report.root_made || options.uuid.empty() || options.call.ledgers.backup) return;
  const auto warn = [&](const char* flag, const char* consequence) {
    if (options.IsGiven(flag)) return;
    unknown.push_back(flag);
    output.text += Cat("WARNING: --", flag, " is not set: ", consequence, "\n");
  };
  warn("rack_bits", "the layout's default is used");
  if (!options.call.answers.default_strategy.value_or("").empty()) {
    warn("ids_since", "segment and dated tags issue nothing until it is");
  }
}

void PrintPlan(const Audit& audit, const RestoreFacts& facts, Output& output) {
  const bool made = !audit.meta || facts.replaces_unused;
  const std::string& uuid = made || !facts.uuid.empty() ? facts.uuid : audit.meta->uuid;
  const WallMs floor = PlannedFloor(audit, facts);
  output.json["uuid"] = uuid;
  output.json["floor_ms"] = floor.ms();
  output.json["root_made"] = made;
  if (facts.replaces_unused) {
    output.text += "cluster " + audit.meta->uuid + ", which was never used, is replaced\n";
  }
  output.text +=
      Cat("cluster ", uuid.empty() ? "(a new uuid)" : uuid, " is ",
          made ? "re-created" : "restored", "; ids start at ", FormatRfc3339(floor), " or later\n");
  if (!facts.reserved.empty()) {
    output.text += "machine ids are reserved: " + FormatReserved(facts.reserved) + "\n";
  }
  for (const MachineId machine : facts.retired) {
    output.text += Cat("machine id ", machine.value(), " is retired\n");
  }
}

void PrintKnown(const Audit& audit, const RestoreCall& call, const RestoreFacts& facts,
                const RestoreReport& report, Output& output) {
  output.text +=
      Cat("considered besides the registry's records: ", audit.providers.size(),
          " running servers, ", facts.bounds.size(), " bounds of servers and documents\n");
  if (const std::optional<Backup>& backup = call.ledgers.backup) {
    output.text += Cat("backup of ", FormatRfc3339(backup->taken), ", cluster ", backup->root.uuid,
                       ", ", backup->tags.size(), " tags\n");
  }
  if (facts.floor - facts.now > kPoisonAhead) {
    output.text +=
        Cat("WARNING: by a document or an answer, ids have come up to ", FormatRfc3339(facts.floor),
            ", more than a day ahead; new ids begin above it\n");
  }
  const auto silent = SilentHolders(audit, call.ledgers.documents, facts.now);
  if (!silent.empty()) {
    output.text +=
        Cat("WARNING: a document contains claims up to ", FormatRfc3339(silent.front().bound),
            " that no running server reports; if there was a restore since, whose ids "
            "are further ahead of the clock, run the command again with "
            "--set=floor=TIME\n");
  }
  output.json["servers"] = audit.providers.size();
  for (const auto& [provider, told] : audit.providers) {
    const Milliseconds skew = std::chrono::abs(Milliseconds(told.clock_skew_ms));
    if (skew - audit.Lead() <= kPoisonAhead) continue;
    output.wrong = true;
    output.text += Cat("WRONG: ", provider.address, " reports that its clock is off by ",
                       DurationText(skew), "; the floor ignores it\n");
  }
  auto& ignored = output.json["ignored_bounds_ms"] = Json::array();
  for (const auto& [bound, machine] : report.ignored) {
    output.wrong = true;
    ignored.push_back(bound.ms());
    output.text += Cat("WRONG: the bound ", FormatRfc3339(bound),
                       " is more than a day ahead, so the floor ignores it; ",
                       (machine ? Cat("machine id ", machine->value(), " is retired")
                                : "run the command again with --set=retire=MACHINE"),
                       "\n");
  }
}

}  // namespace firn
