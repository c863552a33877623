#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_policy.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/restore/restore_report.h"
#include "tools/firn/restore/restore_steps.h"
#include "tools/firn/restore/restore_tags.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

// Refuses a restore of all data without a word about the lost cluster: the new one would have
// another uuid, and its servers would refuse it.
Status CheckThatClusterIsNamed(BlockingCoordinator& registry, const RestoreOptions& options) {
  if (!options.uuid.empty() || !options.documents.empty() || options.Gives("layout")) return {};
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
Result<RegistrySession> OpenForRestore(bool dry_run) {
  if (!dry_run) return RegistrySession::OpenOrCreate();
  Result<RegistrySession> session = RegistrySession::Open();
  if (session.code() != Code::kNotFound) return session;
  return NotFound("there is no registry at " + ChosenRegistry() +
                  "; to create one, run the same command without --dry_run");
}

Result<Output> RunRestore(const Words& words) {
  FIRN_ASSIGN(RestoreOptions options, ReadRestoreOptions(words));
  FIRN_ASSIGN(RegistrySession session, OpenForRestore(options.dry_run));
  FIRN_TRY(CheckThatClusterIsNamed(session.registry(), options));
  return RestoreWith(session.registry(), std::move(options));
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
Status AwaitReports(BlockingCoordinator& registry, const RestoreFacts& facts) {
  // Also a frozen one: another run that waits meanwhile must not complete without these facts.
  FIRN_TRY(FreezeForRestore(registry, facts, SystemEntropy()));
  std::cerr << "firn restore: the cluster is frozen; waiting " << AnnounceTime().count() / 1000
            << " s for running servers to report their numbers\n";
  SleepFor(AnnounceTime());
  return {};
}

// Returns whether the cluster already contains all that is known.
Result<bool> Covers(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts,
                    const RestoreOptions& options) {
  if (options.again || !FloorCovers(audit, facts)) return false;
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  return TagsCover(listing, options.call);
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
                       const RestoreOptions& options) {
  const RestoreCall& call = options.call;
  Output output;
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    FIRN_TRY(RestoreTags(registry, frozen, call.tags, call.ledgers, output));
    return TellUnreadable(registry, output);
  };
  Audit latest = audit;
  facts.last_reports = [&](const MetaAsRead&) -> Result<std::vector<ProviderReport>> {
    FIRN_ASSIGN(latest, ReadAudit(registry, SystemClock().Wall()));
    FIRN_TRY(CheckLostTags(latest, call, RanCommand(options)));
    std::vector<ProviderReport> reports = ReportsIn(latest);
    FIRN_TRY(LiftAbove(registry, reports, call.ledgers, output));
    return reports;
  };
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, facts, SystemEntropy()));
  PrintResult(report, output);
  if (!call.ledgers.backup) WarnOfUnknown(report, options, output);
  PrintKnown(latest, call, facts.bounds.size(), report, output);
  const bool keeps_share = !report.root_made && audit.meta && options.lease_share &&
                           *options.lease_share != audit.settings.LeaseShareUnder(*audit.meta);
  if (keeps_share) {
    output.text += "the share of machine ids for leases is as before; change it with " +
                   PrintCommand(PrintedCommand::kSet, {Cat("lease_share=", *options.lease_share)}) +
                   "\n";
  }
  const std::string floor = FormatRfc3339(report.floor);
  output.text += "cluster " + report.uuid + (report.root_made ? " re-created" : " restored") +
                 "; ids start at " + floor +
                 " or later; servers with --clock_policy=strict refuse requests until then\n";
  return output;
}

}  // namespace

Result<Output> RestoreWith(BlockingCoordinator& registry, RestoreOptions options) {
  RestoreCall& call = options.call;
  Audit audit;
  RestoreFacts facts;
  const auto read = [&]() -> Status {
    const WallMs now = SystemClock().Wall();
    FIRN_ASSIGN(audit, ReadAudit(registry, now));
    if (audit.unfinished && MemoryOf(options).Lacks(*audit.unfinished)) {
      FIRN_TRY(Recall(*audit.unfinished, options));
      std::cerr << "firn restore: continues the unfinished restore, also with its";
      for (const auto* const said : {&audit.unfinished->flags, &audit.unfinished->tags}) {
        for (const std::string& word : *said) std::cerr << " " << word;
      }
      std::cerr << "\n";
    }
    FIRN_ASSIGN(facts, GatherFacts(options, audit, now));
    call.ledgers.reports = ReportsIn(audit);
    call.ledgers.reports.push_back(call.highs);
    call.ledgers.replaced = ReplacesUnused(audit, facts);
    facts.memory = MemoryOf(options);
    facts.forgets_documents = options.again;
    return {};
  };
  FIRN_TRY(read());
  FIRN_TRY(CheckRead(options, audit, facts));
  if (!options.again) FIRN_TRY(CheckContinues(audit, facts.memory, RestorePlace()));
  FIRN_ASSIGN(const bool covered, Covers(registry, audit, facts, options));
  if (call.ledgers.backup && !covered && !options.dry_run) {
    // An intact cluster already has the servers' reports: a refusal must not leave it frozen.
    const bool intact = audit.meta && !audit.meta->frozen && !facts.replaces_unused;
    if (intact) FIRN_TRY(CheckFactsSuffice(audit, call, RanCommand(options)));
    FIRN_TRY(AwaitReports(registry, facts));
    FIRN_TRY(read());
    if (!options.again) FIRN_TRY(CheckContinues(audit, facts.memory, RestorePlace()));
  }
  FIRN_TRY(CheckFactsSuffice(audit, call, RanCommand(options)));
  if (covered) return NothingNew(audit, facts);
  if (options.dry_run) return Plan(registry, audit, facts, call);
  return Restore(registry, audit, std::move(facts), options);
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
