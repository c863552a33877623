#include "registry/operate/restore_policy.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/tag/numbers_left.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"

namespace firn {
namespace {

// Adds the backup's bounds with their machine ids, which are then known to be used, or retired if
// their bounds are implausible; and the highest plausible one, which the floor must cover. After a
// restore ids run ahead of all clocks, and the backup tells how far.
void AddBounds(const Backup& backup, RestoreFacts& facts) {
  WallMs highest = std::max(backup.root.IdsBy(facts.now), backup.reached);
  for (const auto& [machine, bound] : backup.bounds) {
    if (bound - facts.now > kPoisonAhead) {
      facts.bounds.push_back({bound, machine});
    } else {
      highest = std::max(highest, bound);
      facts.bounds.push_back({bound, machine});
    }
  }
  if (highest > WallMs()) facts.bounds.push_back({highest});
}

// The number of machine ids of each rack.
uint32_t WorkersOf(const Audit& audit) {
  uint32_t workers = 0;
  for (const AuditedSlot& slot : audit.slots) workers = std::max(workers, slot.slot.worker + 1);
  return workers;
}

// What only an operator can know, and the answers that --set takes, with placeholders.
struct Question {
  std::string what;
  std::vector<std::string> answers{};
};

constexpr size_t kShownMax = 2'000;  // bytes of an earlier version's arguments

bool IsFrozenByLedger(const Audit& audit, const std::string& tag) {
  return audit.meta && audit.meta->frozen && TagWhoseLedgerWentBack(audit.meta->reason) == tag;
}

// Whether the tag's number is known from servers' files alone, and no running server reports it:
// any number of ranges may have been taken since, by servers that are gone.
bool IsSilent(const TagDefinition& tag, const RestoreCall& call) {
  const std::optional<Backup>& backup = call.ledgers.backup;
  return backup && backup->composed && tag.HasLedger() && backup->Find(tag.name) != nullptr &&
         !ReportedOf(tag.name, call.ledgers.reports);
}

void AskOfLostTags(const Audit& audit, const RestoreCall& call, std::vector<Question>& open) {
  const std::optional<Backup>& backup = call.ledgers.backup;
  for (const auto& [name, seen] : audit.lost_tags) {
    const GivenTag* const given = call.answers.Find(name);
    if (seen == 0 || (given && given->defined) || (backup && backup->Find(name) != nullptr))
      continue;
    open.push_back({Cat("the node of tag ", name,
                        " is lost, and servers that have seen its numbers would freeze the cluster "
                        "again. Run the "
                        "command that they print, which names their state folder, add --from with "
                        "the document "
                        "in their /v1/knowledge, or define the tag with its fields as they were"),
                    {AnswerOf(name, "strategy", "STRATEGY")}});
  }
}

void AskOfNumbers(const Audit& audit, const RestoreCall& call, std::vector<Question>& open) {
  std::map<std::string, TagDefinition> tags;
  for (const GivenTag& given : call.answers.tags) tags[given.tag.name] = given.tag;
  if (call.ledgers.backup) {
    for (const TagNode& node : call.ledgers.backup->tags) tags[node.tag.name] = node.tag;
  }
  for (const TagDefinition& tag : audit.tags) {
    if (!call.ledgers.replaced) tags[tag.name] = tag;
  }
  for (const auto& [name, tag] : tags) {
    if (!tag.HasLedger()) continue;
    const int64_t known = HighestKnown(tag, call.ledgers), end = NumbersEnd(tag);
    const bool has_start = call.ledgers.starts.contains(name) && call.ledgers.starts.at(name) > 0;
    const bool is_unknown =
        !tag.start && tag.high == 0 && !KnownOf(name, call.ledgers) && !has_start;
    if (known < end && LiftedTo(tag, known, call.ledgers) >= end) {
      open.push_back({Cat(SumOrMax(known, GapOf(tag, call.ledgers.wanted_gap)), ", where tag '",
                          name, "' would continue, is beyond its last number, ", end - 1,
                          "; give the next number that it may issue, above ", known - 1,
                          " and all that its users have"),
                      {AnswerOf(name, "start", "NUMBER")}});
    } else if (audit.meta && !has_start && IsSilent(tag, call)) {
      open.push_back(
          {Cat("no running server reports tag '", name,
               "', of which servers that stopped had "
               "seen numbers up to ",
               known - 1, "; start the servers, or give the highest number that its users have"),
           {AnswerOf(name, "high", "NUMBER")}});
    } else if (is_unknown && call.answers.Find(name) != nullptr) {
      open.push_back({Cat("no server or document knows how far tag '", name,
                          "' has come; give the highest number that its users have"),
                      {AnswerOf(name, "high", "NUMBER")}});
    }
  }
  if (!audit.meta) return;
  const auto tag = TagWhoseLedgerWentBack(audit.meta->reason);
  if (!tag || !IsFrozenByLedger(audit, *tag) || call.ledgers.starts.contains(*tag) ||
      KnownOf(*tag, call.ledgers)) {
    return;
  }
  open.push_back(
      {Cat("the cluster was frozen because ", audit.meta->reason,
           ", and no running server reports that ledger; start the servers, give --from with "
           "a document, or the highest number that the tag's users have"),
       {AnswerOf(*tag, "high", "NUMBER")}});
}

// A tag that only an answer names must be meant: a name that is mistyped would make a new tag.
void AskOfNames(const Audit& audit, const RestoreCall& call, std::vector<Question>& open) {
  for (const GivenTag& given : call.answers.tags) {
    const std::string& name = given.tag.name;
    const bool exists = std::ranges::any_of(
        audit.tags, [&name](const TagDefinition& tag) { return tag.name == name; });
    const std::optional<Backup>& backup = call.ledgers.backup;
    if (given.defined || exists || (backup && backup->Find(name) != nullptr)) continue;
    open.push_back({Cat("tag '", name,
                        "' is in neither the registry nor a document; if it is lost, "
                        "define it with its fields as they were"),
                    {AnswerOf(name, "strategy", "STRATEGY")}});
  }
}

void AskOfSettings(const RestoreCall& call, std::vector<Question>& open) {
  if (!call.is_lost) return;
  const std::optional<Backup>& backup = call.ledgers.backup;
  const RestoreAnswers& answers = call.answers;
  Question settings{
      "no document contains the settings of the lost cluster; add --from with the state "
      "folder of another server or a backup, or say what the cluster had"};
  if (!backup || !backup->settings_known) {
    if (!answers.default_strategy) settings.answers.emplace_back("default_strategy=VALUE");
    if (!answers.reserved) settings.answers.emplace_back("reserve=VALUE");
  }
  const bool has_tags = backup && (backup->tags_known || !backup->tags.empty());
  if (!has_tags && answers.tags.empty() && !answers.no_other_tags) {
    settings.answers.emplace_back("tags=VALUE");
  }
  if (!settings.answers.empty()) open.push_back(std::move(settings));
}

Status Ask(const std::vector<Question>& open, RestoreArguments ran) {
  if (open.empty()) return {};
  std::string text = "not restored";
  for (const Question& question : open) {
    text += Cat(open.size() == 1 ? ": " : "\n* ", question.what);
    for (const std::string& answer : question.answers) {
      const std::string flag = Cat("--set=", answer);
      const std::string name = flag.substr(0, flag.rfind('=') + 1);
      std::erase_if(ran.flags, [&name](const auto& one) { return one.starts_with(name); });
      ran.flags.push_back(flag);
    }
  }
  return Conflict(Cat(text, ":\n", RestoreCommand(ran)));
}

Status Below(const std::string& answer, const std::string& known) {
  return Conflict(Cat("not restored: --set=", answer, " is below ", known,
                      ", which is known already; leave the answer out, or correct it"));
}

// Returns whether the tag has been lifted above the backup, by the gap.
bool IsLifted(const TagDefinition& tag, const LedgerFacts& facts) {
  const TagNode* const saved = facts.backup->Find(tag.name);
  if (saved == nullptr || !tag.HasLedger() || !saved->tag.HasLedger()) return true;
  return tag.NextBegin() >= LiftedTo(tag, saved->tag.NextBegin(), facts);
}

// Returns whether every tag of the backup exists and has been lifted, or was deleted.
bool CoversBackup(const TagListing& listing, const LedgerFacts& facts) {
  if (!facts.backup) return true;
  std::set<std::string> lifted;
  for (const std::string& tag : listing.deleted) {
    if (!ExistedAgain(tag, facts)) lifted.insert(tag);
  }
  for (const StoredTag& stored : listing.tags) {
    if (IsLifted(stored.tag(), facts)) lifted.insert(stored.tag().name);
  }
  return std::ranges::all_of(facts.backup->tags,
                             [&](const TagNode& node) { return lifted.contains(node.tag.name); });
}

}  // namespace

std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports) {
  std::optional<int64_t> highest;
  for (const ProviderReport& report : reports) {
    if (!report.high.contains(tag) && report.high_others == 0) continue;
    highest = std::max(highest.value_or(0), report.HighOf(tag));
  }
  return highest;
}

std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts) {
  const std::optional<int64_t> reported = ReportedOf(tag, facts.reports);
  const TagNode* const saved = facts.backup ? facts.backup->Find(tag) : nullptr;
  if (saved == nullptr || !saved->tag.HasLedger()) return reported;
  return std::max(reported.value_or(0), saved->tag.NextBegin());
}

bool ExistedAgain(const std::string& deleted_tag, const LedgerFacts& facts) {
  const TagNode* const saved = facts.backup ? facts.backup->Find(deleted_tag) : nullptr;
  if (saved != nullptr && saved->tag.MayHaveIssued()) return true;
  return std::ranges::any_of(facts.reports, [&deleted_tag](const ProviderReport& report) {
    const auto seen = report.high.find(deleted_tag);
    return seen != report.high.end() && seen->second > 0;
  });
}

int64_t HighestKnown(const TagDefinition& tag, const LedgerFacts& facts) {
  return std::max(tag.NextBegin(), KnownOf(tag.name, facts).value_or(0));
}

int64_t LiftedTo(const TagDefinition& tag, int64_t known, const LedgerFacts& facts,
                 std::optional<WallMs> now) {
  const int64_t lifted = LiftTo(tag, known, facts.wanted_gap, now);
  if (lifted < NumbersEnd(tag)) return lifted;
  const auto given = facts.starts.find(tag.name);
  return given != facts.starts.end() && given->second >= known ? known : lifted;
}

void AddBackup(const Backup& backup, const Audit& audit, RestoreFacts& facts) {
  if (!facts.workers && backup.root.workers > 0) {
    facts.workers = ReplacesUnused(audit, facts) ? backup.root.workers
                                                 : std::max(backup.root.workers, WorkersOf(audit));
  }
  facts.window = std::max(facts.window, backup.root.window);
  if (facts.ids_since == WallMs()) facts.ids_since = backup.root.ids_since;
  const bool usual = backup.root.lease_share == ClusterMeta::kLeaseShare;
  if (!facts.lease_share && !usual) facts.lease_share = backup.root.lease_share;
  const std::vector<ReservedIds>& reserved = backup.root.reserved;
  const std::vector<MachineId>& retired = backup.root.retired;
  facts.reserved.insert(facts.reserved.end(), reserved.begin(), reserved.end());
  facts.retired.insert(facts.retired.end(), retired.begin(), retired.end());
  AddBounds(backup, facts);
}

bool ReplacesUnused(const Audit& audit, const RestoreFacts& facts) {
  return facts.replaces_unused || (audit.unfinished && !audit.unfinished->replaced.empty());
}

Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place) {
  if (!audit.unfinished) return {};
  if (!audit.unfinished->outdated.empty()) {
    return Conflict(
        Cat("not restored: an earlier version has begun a restore with arguments that this version "
            "does not have: ",
            audit.unfinished->outdated.substr(0, kShownMax),
            ". Complete it with that version; or say the same with --set, and add --again"));
  }
  for (const RestoreMemory::Document& used : audit.unfinished->documents) {
    if (ran.Knows(used.checksum)) continue;
    return Conflict(Cat(
        "not restored: a restore with ", used.path, ", a document of ", FormatRfc3339(used.taken),
        ", is unfinished, and a run without it would leave out what only that document "
        "contains. Repeat it, or add --again if the document is lost:\n",
        RepairCommand(audit, std::move(place))));
  }
  return {};
}

Status CheckAnswersRaise(const Audit& audit, const RestoreCall& call) {
  if (audit.unfinished) return {};
  LedgerFacts known{.backup = call.ledgers.backup};
  for (const AuditedProvider& provider : audit.providers) known.reports.push_back(provider.report);
  const auto next = [&](const std::string& name) {
    int64_t highest = KnownOf(name, known).value_or(1);
    for (const TagDefinition& tag : audit.tags) {
      if (tag.name == name && !call.ledgers.replaced) highest = std::max(highest, tag.NextBegin());
    }
    return highest;
  };
  for (const auto& [tag, high] : call.answers.highs.high) {
    const int64_t least = next(tag) - 1;
    if (high - 1 >= least) continue;
    return Below(AnswerOf(tag, "high", std::to_string(high - 1)), std::to_string(least));
  }
  for (const auto& [tag, defined] : call.answers.tags) {
    const int64_t least = next(tag.name);
    if (!tag.start || *tag.start >= least) continue;
    return Below(AnswerOf(tag.name, "start", std::to_string(*tag.start)), std::to_string(least));
  }
  const RootSettings saved = known.backup ? known.backup->root : RootSettings();
  const Milliseconds window = std::max(saved.window, audit.settings.window);
  if (call.answers.window.value_or(window) < window) {
    return Below(Cat("window=", call.answers.window->count()), Cat(window.count(), " ms"));
  }
  const bool kept = audit.meta && !call.ledgers.replaced;
  const uint32_t workers = std::max(saved.workers, kept ? WorkersOf(audit) : 0);
  if (call.answers.workers && *call.answers.workers < workers) {
    return Below(Cat("workers=", *call.answers.workers), Cat(workers));
  }
  const WallMs floor = std::max(saved.floor, kept ? audit.meta->floor : WallMs());
  for (const WallMs given : call.answers.floors) {
    if (given < floor) return Below(Cat("floor=", FormatRfc3339(given)), FormatRfc3339(floor));
  }
  return {};
}

Status CheckLostTags(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran) {
  std::vector<Question> open;
  AskOfLostTags(audit, call, open);
  return Ask(open, ran);
}

Status CheckSettings(const RestoreCall& call, const RestoreArguments& ran) {
  std::vector<Question> open;
  AskOfSettings(call, open);
  return Ask(open, ran);
}

Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran) {
  std::vector<Question> open;
  AskOfLostTags(audit, call, open);
  AskOfNames(audit, call, open);
  AskOfNumbers(audit, call, open);
  return Ask(open, ran);
}

bool FloorCovers(const Audit& audit, const RestoreFacts& facts) {
  if (!audit.meta || audit.meta->frozen || audit.Losses() > 0 || facts.replaces_unused)
    return false;
  if (facts.NewIdsSince(*audit.meta)) return false;
  if (facts.workers.value_or(0) > WorkersOf(audit)) return false;
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
    // The bound of a server's leases has no machine id, so no record can show that it is not lost.
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

bool TagsCover(const TagListing& listing, const RestoreCall& call) {
  const RestoreAnswers& answers = call.answers;
  if (!CoversBackup(listing, call.ledgers)) return false;
  std::map<std::string, TagDefinition> there;
  for (const StoredTag& tag : listing.tags) there[tag.tag().name] = tag.tag();
  const auto covers = [&there](const std::string& tag, int64_t number) {
    const auto found = there.find(tag);
    return found != there.end() && found->second.NextBegin() >= number;
  };
  return std::ranges::all_of(
             answers.tags,
             [&](const GivenTag& one) {
               return covers(one.tag.name, one.tag.start.value_or(0)) &&
                      (!one.defined || FormOf(one.tag) == FormOf(there[one.tag.name]));
             }) &&
         std::ranges::all_of(answers.highs.high,
                             [&](const auto& high) { return covers(high.first, high.second); });
}

}  // namespace firn
