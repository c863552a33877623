#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_policy.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/restore/restore_report.h"
#include "tools/firn/restore/restore_tags.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

// Returns kInvalid if the registry is empty and no option identifies the lost cluster: the restored
// cluster would have another uuid, so the running servers would refuse it.
Status CheckThatClusterIsNamed(BlockingCoordinator& registry, const RestoreOptions& options) {
  if (!options.uuid.empty() || !options.documents.empty() || IsFlagSet("layout")) return {};
  if (ReadMeta(registry).code() != Code::kNotFound) return {};
  return Invalid(
      "the registry has no cluster, and nothing names the lost one; use the " +
      PrintCommand(PrintedCommand::kRestore) +
      " command in the servers' logs, --from with a server's state folder or a backup, or " +
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

// Opens the registry. Creates a missing directory registry unless this is a dry run.
Result<RegistrySession> OpenForRestore(bool dry_run) {
  if (!dry_run) return RegistrySession::OpenOrCreate();
  Result<RegistrySession> session = RegistrySession::Open();
  if (session.code() != Code::kNotFound) return session;
  return NotFound("there is no registry at " + ChosenRegistry() +
                  "; to create one, run the same command without --dry_run");
}

// Reports tags whose nodes cannot be read and that nothing defines.
Status TellUnreadable(BlockingCoordinator& registry, Output& output) {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  output.wrong |= !listing.faults.empty();
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return {};
}

// Returns a time within which the running servers of a lost cluster register after the root node
// was created: 10 s with ZooKeeper (see init_verb.cc), one poll with a directory, and a margin.
Milliseconds AnnounceTime() {
  return ChosenRegistry().starts_with("zk:") ? Milliseconds(20'000) : Milliseconds(2'000);
}

// Waits for the reports of running servers. A backup does not contain the numbers that servers have
// issued since, a server that has just started has not reported its numbers yet, and a wiped
// registry lacks the parent node of the reports. Freezes the cluster first, unless it is intact.
Status AwaitReports(BlockingCoordinator& registry, const RestoreFacts& facts, bool intact) {
  // Freezes also a frozen cluster, so that another run that waits now does not complete without
  // these facts.
  if (!intact) FIRN_TRY(FreezeForRestore(registry, facts, SystemEntropy()));
  std::cerr << "firn restore: " << (intact ? "waiting " : "the cluster is frozen; waiting ")
            << AnnounceTime().count() / 1000 << " s for running servers to report their numbers\n";
  SleepFor(AnnounceTime());
  return {};
}

// Returns whether the cluster already contains all known facts.
Result<bool> Covers(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts,
                    const RestoreOptions& options) {
  if (options.again || !FloorCovers(audit, facts)) return false;
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  return TagsCover(listing, options.call);
}

Result<Output> Plan(BlockingCoordinator& registry, const Audit& audit, const RestoreFacts& facts,
                    const RestoreOptions& options, Status open) {
  const RestoreCall& call = options.call;
  Output output;
  PrintPlan(audit, facts, output);
  for (const std::string& answer : call.answers.said) output.text += "answer " + answer + "\n";
  FIRN_TRY(PlanTags(registry, call.answers.tags, call.ledgers, facts.now, output));
  output.failed = std::move(open);
  if (options.dry_run) output.text += "nothing was changed (--dry_run)\n";
  return output;
}

Result<Output> Restore(BlockingCoordinator& registry, const Audit& audit, RestoreFacts facts,
                       const RestoreOptions& options) {
  const RestoreCall& call = options.call;
  Output output;
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    FIRN_TRY(RestoreTags(registry, frozen, call.answers.tags, call.ledgers, output));
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
  WarnOfUnknown(report, options, output);
  PrintKnown(latest, call, facts, report, output);
  const std::optional<int64_t> share = call.answers.lease_share;
  if (!report.root_made && audit.meta && share &&
      *share != audit.settings.LeaseShareUnder(*audit.meta)) {
    output.text += "the share of machine ids for leases is as before; change it with " +
                   PrintCommand(PrintedCommand::kSet, {Cat("lease_share=", *share)}) + "\n";
  }
  const std::string floor = FormatRfc3339(report.floor);
  output.text += "cluster " + report.uuid + (report.root_made ? " re-created" : " restored") +
                 "; ids start at " + floor +
                 " or later; servers with --clock_policy=strict refuse requests until then\n";
  return output;
}

Result<Output> RestoreWith(BlockingCoordinator& registry, RestoreOptions options) {
  RestoreCall& call = options.call;
  const std::string plan_id = DrawUuid(SystemEntropy());  // unless earlier runs have drawn one
  Audit audit;
  RestoreFacts facts;
  std::optional<ProviderReport> used;  // of earlier runs
  const auto read = [&]() -> Status {
    const WallMs now = SystemClock().Wall();
    FIRN_ASSIGN(audit, ReadAudit(registry, now));
    if (!options.again) FIRN_TRY(CheckContinues(audit, MemoryOf(options), RestorePlace()));
    if (audit.unfinished && MemoryOf(options).Lacks(*audit.unfinished)) {
      FIRN_TRY(Recall(*audit.unfinished, options));
      std::cerr << "firn restore: continues the unfinished restore, also with its";
      for (const std::string& flag : audit.unfinished->flags) std::cerr << " " << flag;
      std::cerr << "\n";
    }
    FIRN_ASSIGN(facts, GatherFacts(options, audit, now));
    call.ledgers.reports = ReportsIn(audit);
    call.ledgers.reports.push_back(call.answers.highs);
    if (!used) used = UsedStarts(audit);
    call.ledgers.reports.push_back(*used);
    call.ledgers.replaced = ReplacesUnused(audit, facts);
    call.ledgers.made = audit.made;
    call.is_lost = !facts.uuid.empty() && (!audit.meta || facts.replaces_unused);
    facts.memory = MemoryOf(options);
    facts.memory.plan = plan_id;
    facts.forgets_documents = options.again;
    if (FormatRestoreMemory(facts.memory, Nonce()).size() <= kRestoreBytesMax) return {};
    return Invalid(
        Cat("the answers and the names of documents are longer than ", kRestoreBytesMax,
            " bytes, which the registry cannot remember; name documents with --from in place of "
            "single answers"));
  };
  FIRN_TRY(read());
  FIRN_ASSIGN(const bool covered, Covers(registry, audit, facts, options));
  if (covered) return NothingNew(audit, facts);
  FIRN_TRY(CheckAnswersRaise(audit, call));
  const auto plan = [&](Status open) {
    return Plan(registry, audit, facts, options, std::move(open));
  };
  if (Status open = CheckSettings(audit, call, RanCommand(options)); !open.ok()) return plan(open);
  const auto open = [&] { return CheckFactsSuffice(audit, call, facts.now, RanCommand(options)); };
  if ((call.ledgers.backup || call.is_lost || audit.unfinished) && !options.dry_run) {
    // This cluster already has the servers' reports: a refusal must not leave it frozen.
    const bool reports = audit.meta && !audit.meta->frozen && !facts.replaces_unused;
    if (reports && !open().ok()) return plan(open());
    FIRN_TRY(AwaitReports(registry, facts, reports && audit.Losses() == 0));
    FIRN_TRY(read());
  }
  if (options.dry_run || !open().ok()) return plan(open());
  return Restore(registry, audit, std::move(facts), options);
}

Result<Output> RunRestore(const Words& words) {
  if (!words.empty()) {
    return Invalid(Cat(Quoted(words.front()),
                       " is not a flag; answers are given with --set, as in "
                       "--set=order.high=5000"));
  }
  FIRN_ASSIGN(RestoreOptions options, ReadRestoreOptions(AnswersOnCommandLine()));
  FIRN_ASSIGN(RegistrySession session, OpenForRestore(options.dry_run));
  FIRN_TRY(CheckThatClusterIsNamed(session.registry(), options));
  return RestoreWith(session.registry(), std::move(options));
}

}  // namespace

Verb RestoreVerb() {
  return {
      .name = "restore",
      .summary = "lifts a cluster that lost data above everything that may have been issued",
      .details =
          "For a registry that was wiped, rolled back or restored from a backup. While the\n"
          "cluster is frozen, it lifts every tag's ledger, sets the floor of machine ids,\n"
          "retires poisoned slots and repairs damaged nodes; then it permits claims again.\n"
          "Servers print the command in their log and as `trouble` in /v1/status. Repeating it\n"
          "without new facts changes nothing.\n"
          "--from names what is known of the cluster: the state folder of a server, which need\n"
          "not run (--state_dir), a file of firn backup, or the document that a server returns\n"
          "at /v1/knowledge of its admin port. All of them are merged, and the highest of each\n"
          "number counts. Their numbers are lower bounds: every tag is lifted above them and\n"
          "above the reports of running servers. --dry_run prints the plan.\n"
          "If only a person can know something, the restore stops after the plan and prints\n"
          "the --set that answers it. Programs that embed Firn report nothing: give their\n"
          "state folders, and what users' records show of a tag, with --set=TAG.high=NUMBER.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "from", "set", "dry_run", "again", "uuid", "layout",
                "rack_bits", "ids_since", "skew_max_ms", "tag_gap"},
      .run = RunRestore};
}

}  // namespace firn
