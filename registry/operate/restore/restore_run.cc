#include "registry/operate/restore/restore_run.h"

#include <optional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore_policy.h"

namespace firn {
namespace {

using Kind = RestoreOutcome::Kind;

std::vector<ProviderReport> ReportsIn(const Audit& audit) {
  std::vector<ProviderReport> reports;
  for (const AuditedProvider& provider : audit.providers) reports.push_back(provider.report);
  return reports;
}

// One call of RunRestore.
class Run {
 public:
  Run(BlockingCoordinator& registry, const RestoreContext& context, RestoreOptions& options)
      : registry_(registry),
        context_(context),
        options_(options),
        plan_id_(DrawUuid(context.entropy)) {}

  Status Do();
  RestoreOutcome outcome;

 private:
  Status CheckThatClusterIsNamed();
  Status Read();
  Result<bool> Covers();
  Status AwaitReports(bool intact);
  Status Plan(Status question);
  Status Restore();
  RestoreArguments Ran() const { return RanCommand(options_, context_.command); }
  Status Question() const {
    return CheckFactsSuffice(outcome.audit, options_.call, outcome.facts.now, Ran());
  }

  BlockingCoordinator& registry_;
  const RestoreContext& context_;
  RestoreOptions& options_;
  const std::string plan_id_;             // unless earlier runs have drawn one
  std::optional<ProviderReport> used_{};  // of earlier runs
};

// Returns kInvalid if the registry is empty and no option identifies the lost cluster: the restored
// cluster would have another uuid, so the running servers would refuse it.
Status Run::CheckThatClusterIsNamed() {
  const bool names = !options_.uuid.empty() || !options_.documents.empty();
  if (names || options_.IsGiven("layout")) return {};
  if (ReadMeta(registry_).code() != Code::kNotFound) return {};
  return Invalid(
      "the registry has no cluster, and nothing names the lost one; use the " +
      PrintCommand(PrintedCommand::kRestore) +
      " command in the servers' logs, --from with a server's state folder or a backup, or " +
      PrintCommand(PrintedCommand::kInit) + " for a new cluster");
}

// Reads the registry and merges it with the options.
Status Run::Read() {
  Audit& audit = outcome.audit;
  RestoreFacts& facts = outcome.facts;
  RestoreCall& call = options_.call;
  const WallMs now = context_.clock.Wall();
  FIRN_ASSIGN(audit, ReadAuditWithoutOwners(registry_, now));
  const RestoreMemory given = MemoryOf(options_, context_.command.host);
  if (!options_.again) FIRN_TRY(CheckContinues(audit, given, context_.command));
  if (audit.unfinished && given.Lacks(*audit.unfinished)) {
    FIRN_TRY(Recall(*audit.unfinished, options_));
    context_.on_recall(*audit.unfinished);
  }
  FIRN_ASSIGN(facts, GatherFacts(options_, audit, now));
  call.ledgers.reports = ReportsIn(audit);
  call.ledgers.reports.push_back(call.answers.highs);
  if (!used_) used_ = UsedStarts(audit);
  call.ledgers.reports.push_back(*used_);
  call.ledgers.replaced = ReplacesUnused(audit, facts);
  call.ledgers.made = audit.made;
  call.is_lost = !facts.uuid.empty() && (!audit.meta || facts.replaces_unused);
  facts.memory = MemoryOf(options_, context_.command.host);
  facts.memory.plan = plan_id_;
  facts.forgets_documents = options_.again;
  if (FormatRestoreMemory(facts.memory, Nonce()).size() <= kRestoreBytesMax) return {};
  return Invalid(
      Cat("the answers and the names of documents are longer than ", kRestoreBytesMax,
          " bytes, which the registry cannot remember; name documents with --from in place of "
          "single answers"));
}

// Returns whether the cluster already contains all known facts. No node shows by which gap a tag
// was lifted, only documents do.
Result<bool> Run::Covers() {
  if (options_.again || !FloorCovers(outcome.audit, outcome.facts)) return false;
  const LedgerFacts& ledgers = options_.call.ledgers;
  const bool has_gap = options_.IsGiven("tag_gap") && ledgers.wanted_gap > 0;
  if (has_gap && !ledgers.backup) return false;
  FIRN_ASSIGN(const TagListing listing, TagStore(registry_).ReadAll());
  return TagsCover(listing, options_.call);
}

// Freezes also a frozen cluster, so that another run that waits now does not complete without these
// facts.
Status Run::AwaitReports(bool intact) {
  if (!intact) FIRN_TRY(FreezeForRestore(registry_, outcome.facts, context_.entropy));
  context_.await_reports(!intact);
  return Read();
}

Status Run::Plan(Status question) {
  const RestoreCall& call = options_.call;
  outcome.kind = Kind::kPlanned;
  outcome.question = std::move(question);
  FIRN_ASSIGN(outcome.tags,
              PlanTags(registry_, call.answers.tags, call.ledgers, outcome.facts.now));
  return {};
}

Status Run::Restore() {
  const RestoreCall& call = options_.call;
  RestoreFacts facts = outcome.facts;
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    FIRN_TRY(RestoreTags(registry_, frozen, call.answers.tags, call.ledgers, outcome.tags));
    FIRN_ASSIGN(TagListing listing, TagStore(registry_).ReadAll());
    outcome.unreadable = std::move(listing.faults);
    return {};
  };
  facts.last_reports = [&](const MetaAsRead&) -> Result<std::vector<ProviderReport>> {
    FIRN_ASSIGN(outcome.audit, ReadAuditWithoutOwners(registry_, context_.clock.Wall()));
    FIRN_TRY(CheckLostTags(outcome.audit, call, Ran()));
    std::vector<ProviderReport> reports = ReportsIn(outcome.audit);
    FIRN_TRY(LiftAbove(registry_, reports, call.ledgers, outcome.tags));
    return reports;
  };
  outcome.kind = Kind::kRestored;
  FIRN_ASSIGN(outcome.report, RestoreCluster(registry_, facts, context_.entropy));
  return {};
}

Status Run::Do() {
  FIRN_TRY(CheckThatClusterIsNamed());
  FIRN_TRY(Read());
  FIRN_ASSIGN(bool covered, Covers());
  if (covered) {
    // A registry that was put back still has the nodes of servers that stopped, for a while.
    FIRN_TRY(AwaitReports(/*intact=*/true));
    FIRN_ASSIGN(covered, Covers());
  }
  if (covered) return {};
  const Audit& audit = outcome.audit;
  const RestoreCall& call = options_.call;
  FIRN_TRY(CheckAnswersRaise(audit, call));
  if (Status question = CheckSettings(audit, call, Ran()); !question.ok()) return Plan(question);
  if ((call.ledgers.backup || call.is_lost || audit.unfinished) && !options_.dry_run) {
    // This cluster already has the servers' reports: a refusal must not leave it frozen.
    const bool has_reports = audit.meta && !audit.meta->frozen && !outcome.facts.replaces_unused;
    if (has_reports && !Question().ok()) return Plan(Question());
    FIRN_TRY(AwaitReports(has_reports && audit.Losses() == 0));
  }
  if (Status question = Question(); options_.dry_run || !question.ok()) return Plan(question);
  return Restore();
}

}  // namespace

Result<RestoreOutcome> RunRestore(BlockingCoordinator& registry, const RestoreContext& context,
                                  RestoreOptions& options) {
  Run run(registry, context, options);
  FIRN_TRY(run.Do());
  return std::move(run.outcome);
}

}  // namespace firn
