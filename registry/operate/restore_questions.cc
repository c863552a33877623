#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/tag/numbers_left.h"
#include "common/text/time_zone.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"
#include "registry/operate/restore_policy.h"
#include "registry/state/known_tags.h"

namespace firn {
namespace {

// Returns whether a server's document has a higher ledger than all reports: servers that stopped
// may have taken any number of ranges since. A server that has started since reports the
// registry's.
bool IsSilent(const TagDefinition& tag, const RestoreCall& call) {
  if (!tag.HasLedger() || call.answers.all_folders) return false;
  const int64_t reported = ReportedOf(tag.name, call.ledgers.reports).value_or(-1);
  return std::ranges::any_of(call.ledgers.documents, [&](const Backup& document) {
    const TagNode* const saved = document.composed ? document.Find(tag.name) : nullptr;
    return saved != nullptr && saved->tag.high > reported;
  });
}

void AskOfSilent(const std::vector<std::pair<std::string, int64_t>>& tags, Questions& open) {
  if (tags.empty()) return;
  const auto& [name, known] = tags.front();
  Question question{Cat("a document of a server contains higher numbers of ", tags.size(),
                        tags.size() == 1 ? " tag" : " tags",
                        " than running servers report, such as '", name, "' up to ", known - 1,
                        "; start the servers that stopped, give the highest number that the users "
                        "of each tag have, or folders=all if the documents contain the state "
                        "folders of all servers")};
  if (tags.size() > kAskedTagsMax) {
    question.answers.emplace_back("folders=VALUE");
  } else {
    for (const auto& tag : tags) {
      question.answers.push_back(AnswerOf(tag.first, "high", "NUMBER"));
    }
  }
  open.push_back(std::move(question));
}

void AskOfLostTags(const Audit& audit, const RestoreCall& call, Questions& open) {
  for (const auto& [name, seen] : audit.lost_tags) {
    const GivenTag* const given = call.answers.Find(name);
    if (seen == 0 || (given && given->defined) || call.ledgers.Saved(name) != nullptr) continue;
    open.push_back({Cat("the node of tag ", name,
                        " is lost, and servers that have seen its numbers would freeze the cluster "
                        "again. Run the command that they print, which names their state folder, "
                        "add --from with the document in their /v1/knowledge, or define the tag "
                        "with its fields as they were"),
                    {AnswerOf(name, "strategy", "STRATEGY")}});
  }
}

// Returns the facts of the documents and the running servers, without those of the operator.
LedgerFacts Shown(const Audit& audit, LedgerFacts facts) {
  facts.reports.clear();
  for (const AuditedProvider& provider : audit.providers) facts.reports.push_back(provider.report);
  return facts;
}

// Returns the next number of the tag as the registry and Shown facts have it.
int64_t ShownNext(const std::string& tag, const Audit& audit, const LedgerFacts& shown) {
  int64_t next = KnownOf(tag, shown).value_or(1);
  for (const TagDefinition& there : audit.tags) {
    if (there.name == tag && !shown.replaced) next = std::max(next, HighestKnown(there, shown));
  }
  return next;
}

// Returns whether a dated tag cannot continue at `start`. A period begins first in the east. The
// clock may have gone back since the highest `known` number was issued.
bool IsNoDate(TagDefinition tag, int64_t start, int64_t known, WallMs now) {
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers) return false;
  tag.start = start;
  const int64_t latest = numbers->PeriodAt(now + std::chrono::days(1), TimeZone::Utc());
  return !CheckTag(tag).ok() ||
         numbers->PeriodOf(start - 1) > std::max(latest, numbers->PeriodOf(known - 1));
}

void AskOfNumbers(const Audit& audit, const RestoreCall& call, WallMs now, Questions& open) {
  std::map<std::string, TagDefinition> tags;
  for (const GivenTag& given : call.answers.tags) tags[given.tag.name] = given.tag;
  if (call.ledgers.backup) {
    for (const TagNode& node : call.ledgers.backup->tags) tags[node.tag.name] = node.tag;
  }
  for (const TagDefinition& tag : audit.tags) {
    if (!call.ledgers.replaced) tags[tag.name] = tag;
  }
  std::vector<std::pair<std::string, int64_t>> silent;
  for (const auto& [name, tag] : tags) {
    if (!tag.HasLedger()) continue;
    const int64_t known = HighestKnown(tag, call.ledgers);
    const bool has_start = call.ledgers.starts.contains(name) && call.ledgers.starts.at(name) > 0;
    if (has_start && IsNoDate(tag, call.ledgers.starts.at(name), known, now)) {
      open.push_back({Cat("tag '", name, "' cannot continue at ", call.ledgers.starts.at(name),
                          ", which is not a number of a period up to now"),
                      {AnswerOf(name, "start", "NUMBER")}});
      continue;
    }
    const bool is_unknown =
        !tag.start && tag.high == 0 && !KnownOf(name, call.ledgers) && !has_start;
    const int64_t lifted = LiftedTo(tag, known, call.ledgers, now);
    const int64_t end = NumbersEndFrom(tag, lifted);
    const bool has_period = !tag.Dated() || (known > 1 && !tag.disabled);
    if (known < end && lifted >= end && has_period) {
      open.push_back(
          {Cat(lifted, ", where tag '", name, "' would continue, is beyond its last number, ",
               end - 1, "; give the next number that it may issue, above ", known - 1,
               " and all that its users have"),
           {AnswerOf(name, "start", "NUMBER")}});
    } else if (audit.meta && !has_start && IsSilent(tag, call)) {
      silent.emplace_back(name, known);
    } else if (is_unknown && call.answers.Find(name) != nullptr) {
      open.push_back({Cat("no server or document knows how far tag '", name,
                          "' has come; give the highest number that its users have"),
                      {AnswerOf(name, "high", "NUMBER")}});
    }
  }
  AskOfSilent(silent, open);
  if (!audit.meta || !audit.meta->frozen) return;
  const auto tag = TagWhoseLedgerWentBack(audit.meta->reason);
  if (!tag || call.ledgers.starts.contains(*tag)) return;
  // A server that has started since reports the ledger to which it went back.
  const std::string_view reason = audit.meta->reason;
  const auto was_at = ParseNumberWithin<int64_t>(reason.substr(reason.rfind(' ') + 1), 0);
  if (KnownOf(*tag, call.ledgers).value_or(-1) >= was_at.value_or(0)) return;
  const int64_t next =
      std::max(was_at.value_or(1), ShownNext(*tag, audit, Shown(audit, call.ledgers)));
  open.push_back(
      {Cat("the cluster was frozen because ", audit.meta->reason,
           ", and no running server reports that ledger; start the servers, give --from with "
           "a document, or the highest number that the tag's users have, at least ",
           std::max<int64_t>(1, next - 1)),
       {AnswerOf(*tag, "high", "NUMBER")}});
}

// Asks whether a tag that only an answer names existed: a mistyped name would make a new tag, and a
// number alone makes none, so that servers which know the tag would freeze the cluster again.
void AskOfNames(const Audit& audit, const RestoreCall& call, Questions& open) {
  std::set<std::string> names;
  for (const GivenTag& given : call.answers.tags) names.insert(given.tag.name);
  for (const auto& [name, high] : call.answers.highs.high) names.insert(name);
  for (const std::string& name : names) {
    const GivenTag* const given = call.answers.Find(name);
    const bool exists = std::ranges::any_of(
        audit.tags, [&name](const TagDefinition& tag) { return tag.name == name; });
    if ((given && given->defined) || exists || call.ledgers.Saved(name) != nullptr) continue;
    open.push_back({Cat("tag '", name,
                        "' is in neither the registry nor a document; if it is lost, "
                        "define it with its fields as they were"),
                    {AnswerOf(name, "strategy", "STRATEGY")}});
  }
}

void AskOfSettings(const RestoreCall& call, Questions& open) {
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
  const bool defines = std::ranges::any_of(answers.tags, &GivenTag::defined);
  const bool has_list = answers.no_other_tags || (backup && backup->tags_known) ||
                        std::ranges::any_of(call.ledgers.documents, [](const Backup& document) {
                          return !document.composed && document.tags.size() >= kListedTagsMax;
                        });
  const bool has_tags = backup && !backup->tags.empty();
  if (!has_list && !has_tags && !defines) settings.answers.emplace_back("tags=VALUE");
  if (!settings.answers.empty()) open.push_back(std::move(settings));
  if (!has_list && has_tags) {
    open.push_back(
        {Cat("the documents contain ", backup->tags.size(),
             " tags, and a server's list is incomplete (a server reads at most ", kListedTagsMax,
             " tags); add --from with a backup of the registry that has more, or define each "
             "other tag and say that there was no other one with tags=none"),
         {"tags=VALUE"}});
  }
  if (answers.window || (backup && backup->root.window > Milliseconds(0))) return;
  open.push_back(
      {"no document contains the cluster's claim window; give the largest "
       "--claim_window_ms of any server, which is 600000 if none had that flag",
       {"window=MILLISECONDS"}});
}

void AskOfHolders(const Audit& audit, const RestoreCall& call, WallMs now, Questions& open) {
  const std::optional<Backup>& backup = call.ledgers.backup;
  if (!backup || backup->settings_known || !call.answers.floors.empty()) return;
  const std::vector<ReportedBound> silent = SilentHolders(audit, call.ledgers.documents, now);
  if (silent.empty()) return;
  open.push_back({Cat("a document contains claims up to ", FormatRfc3339(silent.front().bound),
                      " that no running server reports, and none contains how far ids were ahead "
                      "of the clock; start the servers, or give a time one claim window above the "
                      "highest time in their ids"),
                  {"floor=TIME"}});
}

Status Ask(const Questions& open, RestoreArguments ran) {
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
                      ", which is known already; give that or more, or leave the answer out"));
}

}  // namespace

Status CheckContinues(const Audit& audit, const RestoreMemory& ran, RestoreArguments place) {
  if (!audit.unfinished) return {};
  for (const RestoreMemory::Document& used : audit.unfinished->documents) {
    if (ran.Knows(used)) continue;
    return Conflict(Cat(
        "not restored: a restore with ", used.path, ", a document of ", FormatRfc3339(used.taken),
        ", is unfinished, and a run without it, or with an older state of it, would leave out "
        "what only that document contains. Repeat it on the machine that has the document, or "
        "add --again if the document is lost:\n",
        RepairCommand(audit, std::move(place))));
  }
  return {};
}

Status CheckAnswersRaise(const Audit& audit, const RestoreCall& call) {
  // An unfinished restore has used its answers, and raised ledgers and floor itself.
  const RestoreAnswers used =
      audit.unfinished ? ParseAnswers(audit.unfinished->Answers()).value_or({}) : RestoreAnswers();
  const LedgerFacts known = Shown(audit, call.ledgers);
  const auto next = [&](const std::string& name) { return ShownNext(name, audit, known); };
  for (const auto& [tag, high] : call.answers.highs.high) {
    const int64_t least = next(tag) - 1;
    const auto before = used.highs.high.find(tag);
    if (high - 1 >= least || (before != used.highs.high.end() && before->second == high)) continue;
    return Below(AnswerOf(tag, "high", std::to_string(high - 1)), std::to_string(least));
  }
  for (const auto& [tag, defined] : call.answers.tags) {
    const int64_t least = next(tag.name);
    const GivenTag* const before = used.Find(tag.name);
    if (!tag.start || *tag.start >= least || (before && before->tag.start == tag.start)) continue;
    return Below(AnswerOf(tag.name, "start", std::to_string(*tag.start)), std::to_string(least));
  }
  const RootSettings saved = known.backup ? known.backup->root : RootSettings();
  const Milliseconds window = std::max(saved.window, audit.settings.window);
  const RestoreAnswers& said = call.answers;
  if (said.window.value_or(window) < window && said.window != used.window) {
    return Below(Cat("window=", said.window->count()), Cat(window.count(), " ms"));
  }
  const bool kept = audit.meta && !known.replaced;
  const uint32_t workers = std::max(saved.workers, kept ? audit.workers() : 0);
  if (said.workers.value_or(workers) < workers && said.workers != used.workers) {
    return Below(Cat("workers=", *said.workers), Cat(workers));
  }
  const bool floor_counts = kept && !audit.unfinished;
  const WallMs floor = std::max(saved.floor, floor_counts ? audit.meta->floor : WallMs());
  if (said.floors.empty() || said.floors == used.floors) return {};
  const WallMs highest = std::ranges::max(said.floors);
  if (highest >= floor) return {};
  return Below(Cat("floor=", FormatRfc3339(highest)), FormatRfc3339(floor));
}

Status CheckLostTags(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran) {
  Questions open;
  AskOfLostTags(audit, call, open);
  return Ask(open, ran);
}

Status CheckSettings(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran) {
  Questions open;
  AskOfSettings(call, open);
  AskOfShares(audit, call, open);
  AskOfForms(audit, call, open);
  AskOfDefinitions(audit, call, open);
  return Ask(open, ran);
}

Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, WallMs now,
                         const RestoreArguments& ran) {
  Questions open;
  AskOfLostTags(audit, call, open);
  AskOfNames(audit, call, open);
  AskOfShares(audit, call, open);
  AskOfForms(audit, call, open);
  AskOfDefinitions(audit, call, open);
  AskOfNumbers(audit, call, now, open);
  AskOfHolders(audit, call, now, open);
  return Ask(open, ran);
}

std::vector<ReportedBound> SilentHolders(const Audit& audit, const std::vector<Backup>& documents,
                                         WallMs now) {
  std::vector<ReportedBound> silent;
  WallMs highest = audit.HighestTimeAt(now);
  for (const Backup& document : documents) highest = std::max(highest, document.root.IdsBy(now));
  const bool lead_known = std::ranges::any_of(documents, &Backup::settings_known);
  const auto take = [&](const ReportedBound& held) {
    const auto reports = [&held](const AuditedProvider& server) {
      const ProviderReport& report = server.report;
      return (held.machine && report.BoundOf(*held.machine)) || report.lease_bound >= held.bound;
    };
    const bool plausible = !lead_known || held.bound - highest <= kPoisonAhead;
    if (held.bound > now && plausible && !std::ranges::any_of(audit.providers, reports))
      silent.push_back(held);
  };
  for (const Backup& document : documents) {
    for (const auto& [machine, bound] : document.bounds) take({bound, machine});
    for (const WallMs time : document.reached) take({time});
  }
  std::ranges::sort(silent, std::greater(), &ReportedBound::bound);
  return silent;
}

}  // namespace firn
