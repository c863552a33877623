#include <algorithm>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/restore/restore_report.h"
#include "tools/firn/restore/restore_steps.h"
#include "tools/firn/restore/restore_tags.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_bool(again, false,
            "Restore once more although no fact is new since the last restore: the data were lost "
            "again.");
DECLARE_bool(dry_run);
DECLARE_string(uuid);
DECLARE_string(from);
DECLARE_string(default_strategy);

namespace firn {
namespace {

using Words = std::vector<std::string>;

// Refuses a restore of all data without a word about the lost cluster: the new one would have
// another uuid, and its servers would refuse it.
Status CheckThatClusterIsNamed(BlockingCoordinator& registry) {
  if (!FLAGS_uuid.empty() || !FLAGS_from.empty() || IsFlagSet("layout")) return {};
  if (ReadMeta(registry).code() != Code::kNotFound) return {};
  return Invalid(
      "the registry has no cluster, and neither --uuid nor --from names the lost one; use the " +
      PrintCommand(PrintedCommand::kRestore) +
      " command in the servers' logs, --from with a backup, or " +
      PrintCommand(PrintedCommand::kInit) + " for a new cluster");
}

std::vector<ProviderReport> ReportsIn(const Audit& audit) {
  std::vector<ProviderReport> reports;
  for (const AuditedProvider& provider : audit.providers) reports.push_back(provider.report);
  return reports;
}

bool Says(const std::vector<GivenTag>& tags, const std::string& name) {
  return std::ranges::any_of(tags, [&name](const GivenTag& one) { return one.tag.name == name; });
}

// Returns kConflict if arguments and backup omit a lost tag that servers report: they would freeze
// the cluster again.
Status CheckLostTags(const Audit& audit, const RestoreCall& call) {
  std::vector<TagDefinition> unsaid;
  const std::optional<Backup>& backup = call.ledgers.backup;
  for (const auto& [name, seen] : audit.lost_tags) {
    if (seen == 0 || Says(call.tags, name) || (backup && backup->Find(name) != nullptr)) continue;
    TagDefinition lost;
    lost.name = name;
    lost.high = seen;
    unsaid.push_back(std::move(lost));
  }
  if (unsaid.empty()) return {};
  const std::string first = unsaid.front().name;
  return Conflict(
      "the tags were not restored: the node of tag " + first +
      " is lost, and servers would freeze the cluster again. Add its next number, and its other "
      "fields as they were (a server's /v1/status and log show them), and disabled=true if it is "
      "no longer needed:\n" +
      RestoreCommandFor(audit, std::move(unsaid)));
}

// Returns kConflict if the cluster is frozen because a ledger went back, and nothing says how far
// that ledger was: no gap is known to suffice.
Status CheckFrozenLedger(const Audit& audit, const RestoreCall& call) {
  if (!audit.meta || !audit.meta->frozen) return {};
  const auto tag = TagWhoseLedgerWentBack(audit.meta->reason);
  if (!tag || Says(call.tags, *tag) || KnownOf(*tag, call.ledgers)) return {};
  return Conflict(Cat(
      "not restored: the cluster was frozen because ", audit.meta->reason,
      ", and no running server reports that ledger. Start the servers, or give --from with a "
      "backup, or the highest number of the tag that its users have:\n",
      PrintCommand(
          PrintedCommand::kRestore,
          {"--registry=" + ChosenRegistry(), Cat("--tag_high=", EncodeTagName(*tag), "=NUMBER")})));
}

// Returns whether the tag has been lifted above the backup, by the gap.
bool IsLifted(const TagDefinition& tag, const LedgerFacts& facts) {
  const TagNode* const saved = facts.backup->Find(tag.name);
  if (saved == nullptr || !tag.HasLedger() || !saved->tag.HasLedger()) return true;
  return tag.NextBegin() >= LiftTo(tag, saved->tag.NextBegin(), facts.wanted_gap);
}

// Returns whether every tag of the backup exists, or was deleted, and has been lifted.
bool CoversBackup(const TagListing& listing, const LedgerFacts& facts) {
  if (!facts.backup) return true;
  std::set<std::string> lifted(listing.deleted.begin(), listing.deleted.end());
  for (const StoredTag& stored : listing.tags) {
    if (IsLifted(stored.tag(), facts)) lifted.insert(stored.tag().name);
  }
  return std::ranges::all_of(facts.backup->tags,
                             [&](const TagNode& node) { return lifted.contains(node.tag.name); });
}

// Returns whether the arguments name only existing tags, no number above their ledgers, and no
// other form, and the tags are above the backup.
Result<bool> TagsCover(BlockingCoordinator& registry, const RestoreCall& call) {
  const auto& [tags, said, ledgers] = call;
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  if (!CoversBackup(listing, ledgers)) return false;
  std::map<std::string, TagDefinition> there;
  for (const StoredTag& tag : listing.tags) there[tag.tag().name] = tag.tag();
  const auto covers = [&there](const std::string& tag, int64_t number) {
    const auto found = there.find(tag);
    return found != there.end() && found->second.NextBegin() >= number;
  };
  return std::all_of(tags.begin(), tags.end(),
                     [&](const GivenTag& one) {
                       return covers(one.tag.name, one.tag.start.value_or(0)) &&
                              (!one.defined || FormOf(one.tag) == FormOf(there[one.tag.name]));
                     }) &&
         std::all_of(said.high.begin(), said.high.end(),
                     [&](const auto& high) { return covers(high.first, high.second); });
}

// Returns whether the cluster has just been restored, with a floor above all that is known now.
bool FloorCovers(const Audit& audit, const RestoreFacts& facts) {
  if (!audit.meta || audit.meta->frozen || audit.Losses() > 0 || facts.replaces_unused)
    return false;
  const Milliseconds since = facts.now - audit.meta_set_at;
  const Milliseconds margin = 3 * facts.window;
  const WallMs floor = audit.meta->floor;
  if (since > margin || floor < audit.meta_set_at + margin) return false;
  const auto is_retired = [&audit](MachineId machine) {
    return std::any_of(audit.slots.begin(), audit.slots.end(), [machine](const auto& slot) {
      return slot.machine == machine && slot.record.retired;
    });
  };
  for (const auto& [bound, machine] : facts.bounds) {
    // A plausible bound of a running server equals its record, or the audit would report a loss.
    const bool absurd = bound - facts.now > kPoisonAhead;
    if (absurd ? !machine || !is_retired(*machine) : !machine && bound > floor) return false;
  }
  for (const auto& [first, last, used_by] : facts.reserved) {
    for (uint32_t id = first.value(); id <= last.value(); ++id)
      if (!is_retired(MachineId(id))) return false;
  }
  return facts.now + facts.skew_max <= floor &&
         std::all_of(facts.retired.begin(), facts.retired.end(), is_retired);
}

Output NothingNew(const Audit& audit, const RestoreFacts& facts) {
  const int64_t seconds = (facts.now - audit.meta_set_at).count() / 1000;
  return {.json = {{"uuid", audit.meta->uuid},
                   {"floor_ms", audit.meta->floor.ms()},
                   {"root_made", false},
                   {"nothing_new", true}},
          .text = Cat("the cluster was restored ", seconds,
                      " s ago and nothing new is known, so nothing was changed. If data were lost "
                      "again since then, use --again\n")};
}

// A dry run creates no directory registry.
Result<RegistrySession> OpenForRestore() {
  if (!FLAGS_dry_run) return RegistrySession::OpenOrCreate();
  Result<RegistrySession> session = RegistrySession::Open();
  if (session.code() != Code::kNotFound) return session;
  return NotFound("there is no registry at " + ChosenRegistry() +
                  "; to create one, run the same command without --dry_run");
}

Result<Output> RunRestore(const Words& words) {
  FIRN_ASSIGN(RegistrySession session, OpenForRestore());
  FIRN_TRY(CheckThatClusterIsNamed(session.registry()));
  return RestoreAsFlagsSay(session.registry(), words);
}

// Reports tags whose nodes cannot be read and that no argument defines.
Status TellUnreadable(BlockingCoordinator& registry, Output& output) {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  output.wrong |= !listing.faults.empty();
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return {};
}

// Servers of a lost cluster announce themselves within 10 s of the root node (see init_verb.cc),
// and those of a directory within its poll.
Milliseconds AnnounceTime() {
  return ChosenRegistry().starts_with("zk:") ? Milliseconds(20'000) : Milliseconds(2'000);
}

// A backup does not contain what running servers have issued since, and a server that has just
// started has not reported it yet. A wiped registry even has no place for reports. So freezes the
// cluster, and waits for them.
Status AwaitReports(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts) {
  const bool is_frozen = audit.meta && audit.meta->frozen && !facts.replaces_unused;
  // The reason of an earlier freeze stays: it may name a ledger.
  if (!is_frozen) FIRN_TRY(FreezeForRestore(registry, facts, SystemEntropy()));
  std::cerr << "firn restore: the cluster is frozen; waiting " << AnnounceTime().count() / 1000
            << " s for running servers to report their numbers\n";
  SleepFor(AnnounceTime());
  return {};
}

// Returns whether the cluster already contains all that is known.
Result<bool> Covers(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts,
                    const RestoreCall& call) {
  const bool same_ids = !audit.meta || !facts.NewIdsSince(*audit.meta);
  if (FLAGS_again || !same_ids || !FloorCovers(audit, facts)) return false;
  return TagsCover(registry, call);
}

Result<Output> Plan(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts,
                    const RestoreCall& call) {
  Output output;
  PrintPlan(audit, facts, output);
  FIRN_TRY(PlanTags(registry, call.tags, call.ledgers, facts.now, output));
  output.text += "nothing was changed (--dry_run)\n";
  return output;
}

Result<Output> Restore(BlockingCoordinator& registry, const Audit& audit, RestoreFacts facts,
                       const RestoreCall& call) {
  Output output;
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    FIRN_TRY(RestoreTags(registry, frozen, call.tags, call.ledgers, output));
    return TellUnreadable(registry, output);
  };
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, facts, SystemEntropy()));
  PrintResult(report, output);
  if (!call.ledgers.backup)
    WarnOfUnknown(report, !FLAGS_uuid.empty(), FLAGS_default_strategy, output);
  PrintKnown(audit, call, facts.bounds.size(), report, output);
  const std::string floor = FormatRfc3339(report.floor);
  output.text += "cluster " + report.uuid + (report.root_made ? " re-created" : " restored") +
                 "; ids start at " + floor +
                 " or later; servers with --clock_policy=strict refuse requests until then\n";
  return output;
}

}  // namespace

Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry, const Words& words) {
  FIRN_ASSIGN(RestoreCall call, ReadRestoreCall(words));
  FIRN_ASSIGN(Audit audit, ReadAudit(registry, SystemClock().Wall()));
  FIRN_ASSIGN(RestoreFacts facts, GatherFacts(audit, call.ledgers.backup));
  FIRN_TRY(CheckRead(words, audit, facts, call.ledgers.backup));
  const auto take_reports = [&] {
    call.ledgers.reports = ReportsIn(audit);
    call.ledgers.reports.push_back(call.highs);
  };
  take_reports();
  FIRN_ASSIGN(const bool covered, Covers(registry, audit, facts, call));
  if (call.ledgers.backup && !covered && !FLAGS_dry_run) {
    call.ledgers.replaced = facts.replaces_unused;
    FIRN_TRY(AwaitReports(registry, audit, facts));
    FIRN_ASSIGN(audit, ReadAudit(registry, SystemClock().Wall()));
    FIRN_ASSIGN(facts, GatherFacts(audit, call.ledgers.backup));
    take_reports();
  }
  FIRN_TRY(CheckLostTags(audit, call));
  FIRN_TRY(CheckFrozenLedger(audit, call));
  if (covered) return NothingNew(audit, facts);
  if (FLAGS_dry_run) return Plan(registry, audit, facts, call);
  return Restore(registry, audit, std::move(facts), call);
}

Verb RestoreVerb() {
  return {
      .name = "restore",
      .arguments = "[TAG=START[,KEY=VALUE...]]...",
      .summary = "lifts a cluster that lost data above everything that may have been issued",
      .details =
          "For a registry that was wiped, rolled back or restored from a backup. While the\n"
          "cluster is frozen, it lifts every tag's ledger, sets the floor of machine ids,\n"
          "retires poisoned slots and repairs damaged nodes; then it permits claims again. An\n"
          "argument defines a tag whose node is lost, or whose last edit is lost: its next\n"
          "number, and its fields. Running servers print the whole command in their log and as\n"
          "`trouble` in /v1/status: paste it. Repeating the command without new facts changes\n"
          "nothing.\n"
          "If the root node is lost, give --uuid, because servers refuse another cluster. The\n"
          "re-created cluster has the tag default, as after firn init, unless an argument\n"
          "defines it. A wiped registry has also lost the servers' reports: pass the bounds in\n"
          "/v1/status of servers that still run with --bound_ms. After an earlier restore ids\n"
          "run ahead of all clocks: pass that restore's floor plus the time since then, too,\n"
          "and the largest clock error in any alarm with --skew_max_ms.\n"
          "--from FILE, made by firn backup, names the lost cluster, its settings and its tags.\n"
          "Its numbers are lower bounds: every tag is lifted above them, as above all others, and\n"
          "the tags that only the backup contains are listed. --dry_run prints what a restore\n"
          "would do.\n"
          "Programs that embed Firn report nothing: only the gap, and the servers' reports of\n"
          "their ranges, cover them. Pass what users' records show of a tag with --tag_high.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "uuid", "default_strategy", "ids_since", "layout", "rack_bits",
                "workers", "lease_share", "claim_window_ms", "skew_max_ms", "bound_ms", "retire",
                "reserve", "tag_high", "tag_gap", "again", "from", "dry_run"},
      .run = RunRestore};
}

}  // namespace firn
