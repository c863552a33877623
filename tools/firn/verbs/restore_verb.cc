#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/operate/restore/restore_run.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/restore/restore_report.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

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

// Returns a time within which the running servers of a lost cluster register after the root node
// was created: 10 s with ZooKeeper (see init_verb.cc), one poll with a directory, and a margin.
Milliseconds AnnounceTime() {
  return ChosenRegistry().starts_with("zk:") ? Milliseconds(20'000) : Milliseconds(2'000);
}

Output Planned(const RestoreOutcome& outcome, const RestoreOptions& options) {
  const RestoreCall& call = options.call;
  Output output;
  PrintPlan(outcome.audit, outcome.facts, output);
  for (const std::string& answer : call.answers.said) output.text += "answer " + answer + "\n";
  PrintTags(outcome.tags, /*planned=*/true, call.ledgers.backup.has_value(), output);
  output.failed = outcome.question;
  if (options.dry_run) output.text += "nothing was changed (--dry_run)\n";
  return output;
}

Output Restored(const RestoreOutcome& outcome, const RestoreOptions& options) {
  const auto& [kind, audit, facts, question, tags, unreadable, report] = outcome;
  const RestoreCall& call = options.call;
  Output output;
  PrintTags(tags, /*planned=*/false, call.ledgers.backup.has_value(), output);
  output.wrong = !unreadable.empty();
  for (const std::string& fault : unreadable) output.text += "WRONG: " + fault + "\n";
  PrintResult(report, output);
  WarnOfUnknown(report, options, output);
  PrintKnown(audit, call, facts, report, output);
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

RestoreContext ContextHere() {
  return {.clock = SystemClock(),
          .entropy = SystemEntropy(),
          .command = RestorePlace(),
          .await_reports =
              [](bool frozen) {
                std::cerr << "firn restore: "
                          << (frozen ? "the cluster is frozen; waiting " : "waiting ")
                          << AnnounceTime().count() / 1000
                          << " s for running servers to report their numbers\n";
                SleepFor(AnnounceTime());
              },
          .on_recall =
              [](const RestoreMemory& earlier) {
                std::cerr << "firn restore: continues the unfinished restore, also with its";
                for (const std::string& flag : earlier.flags) std::cerr << " " << flag;
                std::cerr << "\n";
              }};
}

Result<Output> Run(const Words& words) {
  if (!words.empty()) {
    return Invalid(Cat(Quoted(words.front()),
                       " is not a flag; answers are given with --set, as in "
                       "--set=order.high=5000"));
  }
  FIRN_ASSIGN(RestoreOptions options, ReadRestoreOptions(AnswersOnCommandLine()));
  FIRN_ASSIGN(RegistrySession session, OpenForRestore(options.dry_run));
  FIRN_ASSIGN(const RestoreOutcome outcome, RunRestore(session.registry(), ContextHere(), options));
  switch (outcome.kind) {
    case RestoreOutcome::Kind::kNothingNew:
      return NothingNew(outcome.audit, outcome.facts);
    case RestoreOutcome::Kind::kPlanned:
      return Planned(outcome, options);
    case RestoreOutcome::Kind::kRestored:
      return Restored(outcome, options);
  }
  return Internal("unreachable");
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
          "without new facts changes nothing while servers run.\n"
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
      .run = Run};
}

}  // namespace firn
