#include "registry/operate/restore_policy.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_fields.h"
#include "common/tag/tag_form.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"
#include "registry/operate/audit_server.h"

namespace firn {
namespace {

using Definitions = std::vector<TagDefinition>;

// Adds a document's bounds with their machine ids, so that these are marked as used, or retired if
// the bound is implausible. Also adds, without machine ids, the highest plausible bound and the
// times that ids have reached.
void AddBounds(const Backup& document, WallMs certain, RestoreFacts& facts) {
  std::vector<WallMs> reached = document.reached;
  WallMs highest;
  for (const auto& [machine, bound] : document.bounds) {
    facts.bounds.push_back({bound, machine});
    if (bound - certain <= kPoisonAhead) highest = std::max(highest, bound);
  }
  reached.push_back(highest);
  for (const WallMs time : reached) {
    if (time > WallMs()) facts.bounds.push_back({time});
  }
}

// Returns whether edits turn the tag's form into another one, which `later` has.
bool IsEarlierForm(const TagDefinition& tag, const TagDefinition& later) {
  return FormOf(tag) != FormOf(later) && MayBecome(tag, later);
}

// Returns whether a document shows an edit that the registry has lost, unless an answer defines the
// tag.
bool HasLostEdit(const TagDefinition& tag, const RestoreCall& call) {
  const GivenTag* const given = call.answers.Find(tag.name);
  if (!call.ledgers.backup || (given && given->defined)) return false;
  const Definitions saved = call.ledgers.backup->DefinitionsOf(tag.name);
  return std::ranges::any_of(saved, [&tag](const TagDefinition& one) {
    return one.MayHaveIssued() && IsEarlierForm(tag, one);
  });
}

// Returns whether the tag has been lifted above the backup, by the gap.
bool IsLifted(const TagDefinition& tag, const LedgerFacts& facts) {
  const TagNode* const saved = facts.Saved(tag.name);
  if (saved == nullptr || !tag.HasLedger() || !saved->tag.HasLedger()) return true;
  const auto given = facts.starts.find(tag.name);
  const bool has_start = given != facts.starts.end() && given->second >= saved->tag.NextBegin();
  if (has_start && tag.NextBegin() >= given->second) return true;
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

bool HaveForm(const Definitions& definitions, const std::string& form) {
  return std::ranges::all_of(definitions,
                             [&form](const TagDefinition& one) { return FormOf(one) == form; });
}

// Asks for a tag that the restore would define by documents of which none is known to be later.
// The answers repeat what the documents have in common.
void AskOfDefinition(const Definitions& definitions, Questions& open) {
  const TagDefinition& first = definitions.front();
  Question question;
  std::string differences;
  for (const TagField& field : TagFields()) {
    if (field.key == "start" || !Concerns(field, first)) continue;
    std::set<std::string> values;
    for (const TagDefinition& one : definitions) values.insert(FieldText(field, one));
    const bool differs = values.size() > 1;
    for (const std::string& value : values) {
      if (differs)
        differences += Cat(value == *values.begin() ? "; " : " or ", field.key, "=", value);
    }
    if (!differs && IsDefault(field, first) && field.key != "strategy") continue;
    question.answers.push_back(
        AnswerOf(first.name, std::string(field.key), differs ? "VALUE" : FieldText(field, first)));
  }
  for (const auto& [key, value] : first.options) {
    question.answers.push_back(AnswerOf(first.name, key, value));
  }
  question.what = Cat("documents have different definitions of tag '", first.name,
                      "', and none of them is known to be the latest", differences,
                      "; define it with all fields");
  open.push_back(std::move(question));
}

}  // namespace

bool LedgerFacts::ServersKnow(const TagDefinition& tag) const {
  return std::ranges::any_of(documents, [&tag](const Backup& document) {
    const auto known = document.DefinitionsOf(tag.name);
    return document.composed && std::ranges::any_of(known, [&tag](const TagDefinition& one) {
             return FormOf(one) == FormOf(tag);
           });
  });
}

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
  const TagNode* const saved = facts.Saved(tag);
  if (saved == nullptr || !saved->tag.HasLedger()) return reported;
  return std::max(reported.value_or(0), saved->tag.NextBegin());
}

bool ExistedAgain(const std::string& deleted_tag, const LedgerFacts& facts) {
  const TagNode* const saved = facts.Saved(deleted_tag);
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
  int64_t gap = facts.wanted_gap;
  for (const Backup& document : facts.documents) {
    for (const TagDefinition& saved : document.DefinitionsOf(tag.name)) {
      if (saved.strategy == tag.strategy) gap = GapOf(saved, gap);
    }
  }
  const int64_t lifted = LiftTo(tag, known, gap, now);
  if (lifted < NumbersEndFrom(tag, lifted)) return lifted;
  const auto given = facts.starts.find(tag.name);
  return given != facts.starts.end() && given->second >= known ? known : lifted;
}

void AddDocuments(const LedgerFacts& ledgers, const Audit& audit, RestoreFacts& facts) {
  // After a restore, ids are ahead of all clocks.
  for (const Backup& document : ledgers.documents) {
    facts.floor = std::max(facts.floor, document.root.IdsBy(facts.now));
  }
  const WallMs certain = std::max(facts.floor, audit.HighestTimeAt(facts.now));
  for (const Backup& document : ledgers.documents) AddBounds(document, certain, facts);
  if (!ledgers.backup) return;
  const Backup& backup = *ledgers.backup;
  if (backup.root.workers > 0) {
    const uint32_t kept = ReplacesUnused(audit, facts) ? 0 : audit.workers();
    facts.workers = std::max({facts.workers.value_or(0), backup.root.workers, kept});
  }
  facts.window = std::max(facts.window, backup.root.window);
  if (facts.ids_since == WallMs()) facts.ids_since = backup.root.ids_since;
  const bool usual = backup.root.lease_share == ClusterMeta::kLeaseShare;
  if (!facts.lease_share && !usual) facts.lease_share = backup.root.lease_share;
  const std::vector<ReservedIds>& reserved = backup.root.reserved;
  const std::vector<MachineId>& retired = backup.root.retired;
  facts.reserved.insert(facts.reserved.end(), reserved.begin(), reserved.end());
  facts.retired.insert(facts.retired.end(), retired.begin(), retired.end());
}

ProviderReport UsedStarts(const Audit& audit) {
  ProviderReport used;
  if (!audit.unfinished) return used;
  const RestoreAnswers answers = ParseAnswers(audit.unfinished->Answers()).value_or({});
  for (const GivenTag& given : answers.tags) {
    if (given.tag.start) used.high[given.tag.name] = *given.tag.start + 1;
  }
  return used;
}

bool ReplacesUnused(const Audit& audit, const RestoreFacts& facts) {
  return facts.replaces_unused || (audit.unfinished && !audit.unfinished->replaced.empty());
}

WallMs PlannedFloor(const Audit& audit, const RestoreFacts& facts) {
  const bool kept = audit.meta && !facts.replaces_unused;
  const WallMs floor = kept ? audit.meta->floor : WallMs();
  const Milliseconds lead = kept || audit.unfinished ? audit.Lead() : Milliseconds(0);
  Frontier frontier(CertainTime(facts.now, floor, lead, facts));
  for (const ReportedBound& reported : facts.bounds) frontier.Take(reported.bound);
  for (const AuditedSlot& slot : audit.slots) {
    if (!slot.record.retired) frontier.Take(slot.record.bound);
  }
  return frontier.highest() + 3 * facts.window;
}

WallMs CertainTime(WallMs now, WallMs root_floor, Milliseconds lead, const RestoreFacts& facts) {
  return std::max({now + facts.skew_max, now + lead, root_floor, facts.floor});
}

bool Frontier::Take(WallMs bound) {
  if (bound - start_ > kPoisonAhead) return false;
  highest_ = std::max(highest_, bound);
  return true;
}

bool FloorCovers(const Audit& audit, const RestoreFacts& facts) {
  if (!audit.meta || audit.meta->frozen || audit.Losses() > 0 || facts.replaces_unused)
    return false;
  // A registry that was put back to a state after that restore looks the same.
  const auto ours = [&audit](const auto& server) { return !IsForeign(server.report, audit); };
  if (std::ranges::none_of(audit.providers, ours)) return false;
  if (facts.NewIdsSince(*audit.meta)) return false;
  if (facts.workers.value_or(0) > audit.workers()) return false;
  const Milliseconds since = facts.now - audit.meta_set_at;
  const Milliseconds margin = 3 * facts.window;
  const WallMs floor = audit.meta->floor;
  const WallMs certain = CertainTime(facts.now, floor, {}, facts);
  if (since > margin || floor < audit.meta_set_at + margin) return false;
  const auto is_retired = [&audit](MachineId machine) {
    return std::any_of(audit.slots.begin(), audit.slots.end(), [machine](const auto& slot) {
      return slot.machine == machine && slot.record.retired;
    });
  };
  for (const auto& [bound, machine] : facts.bounds) {
    // A plausible bound of a running server equals its record, or the audit would report a loss.
    // The bound of a server's leases has no machine id, so no record can show that it is not lost.
    const bool absurd = bound - certain > kPoisonAhead;
    if (absurd ? !machine || !is_retired(*machine) : !machine && bound > floor) return false;
  }
  for (const auto& [first, last, used_by] : facts.reserved) {
    for (uint32_t id = first.value(); id <= last.value(); ++id)
      if (!is_retired(MachineId(id))) return false;
  }
  return certain <= floor && std::all_of(facts.retired.begin(), facts.retired.end(), is_retired);
}

bool TagsCover(const TagListing& listing, const RestoreCall& call) {
  const RestoreAnswers& answers = call.answers;
  if (!CoversBackup(listing, call.ledgers)) return false;
  const auto has_lost = [&](const StoredTag& stored) { return HasLostEdit(stored.tag(), call); };
  if (std::ranges::any_of(listing.tags, has_lost)) return false;
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

void AskOfForms(const Audit& audit, const RestoreCall& call, Questions& open) {
  std::map<std::string, std::pair<Definitions, const char*>> fixed;
  if (call.ledgers.backup) {
    for (const TagNode& node : call.ledgers.backup->tags) {
      Definitions issued = call.ledgers.backup->DefinitionsOf(node.tag.name);
      std::erase_if(issued, [](const TagDefinition& tag) { return !tag.MayHaveIssued(); });
      if (!issued.empty()) fixed[node.tag.name] = {std::move(issued), "a document"};
    }
  }
  const auto ask = [&open](const TagDefinition& tag, const char* other, const char* known) {
    std::vector<std::string> answers{AnswerOf(tag.name, "strategy", tag.strategy)};
    if (tag.buffer == TagBuffer::kOwner) answers.push_back(AnswerOf(tag.name, "buffer", "owner"));
    open.push_back(
        {Cat(other, " has tag '", tag.name, "' in another form than ", known,
             ", and ids of it may exist; define it as ", known, " has it, with all fields"),
         std::move(answers)});
  };
  const auto ask_of_owner = [&open](const TagDefinition& tag) {
    open.push_back(
        {Cat("a document has tag '", tag.name,
             "' with buffer=owner, but the registry has it with buffer=", BufferName(tag.buffer),
             "; define it with the buffer that it had last, and with all other fields"),
         {AnswerOf(tag.name, "strategy", tag.strategy), AnswerOf(tag.name, "buffer", "VALUE")}});
  };
  for (const TagDefinition& tag : audit.tags) {
    const bool made = call.ledgers.made.contains(tag.name);
    if (call.ledgers.replaced || made || !tag.MayHaveIssued()) continue;
    const auto saved = fixed.find(tag.name);
    if (saved != fixed.end()) {
      Definitions& issued = saved->second.first;
      const GivenTag* const given = call.answers.Find(tag.name);
      const bool asks = !(given && given->defined);
      const auto alike = [&](const TagDefinition& one) { return LookAlike(tag, one); };
      const auto is_later = [&](const TagDefinition& one) { return IsEarlierForm(tag, one); };
      if (std::ranges::any_of(issued, is_later) && std::ranges::all_of(issued, alike)) {
        // The registry has lost an edit, or the document is of a lost history of the tag.
        if (asks) ask_of_owner(tag);
        issued.push_back(tag);  // either form is permitted
        continue;
      }
      const auto is_earlier = [&](const TagDefinition& one) { return MayBecome(one, tag); };
      if (asks && !std::ranges::all_of(issued, is_earlier)) ask(tag, "a document", "the registry");
    }
    fixed[tag.name] = {{tag}, "the registry"};
  }
  for (const GivenTag& given : call.answers.tags) {
    const auto known = fixed.find(given.tag.name);
    if (!given.defined || known == fixed.end()) continue;
    const auto& [tags, where] = known->second;
    const auto fits = [&](const TagDefinition& one) { return MayBecome(one, given.tag); };
    if (std::ranges::none_of(tags, fits)) ask(tags.front(), "an answer", where);
  }
}

void AskOfDefinitions(const Audit& audit, const RestoreCall& call, Questions& open) {
  if (!call.ledgers.backup) return;
  const Backup& backup = *call.ledgers.backup;
  std::set<std::string> names;
  for (const TagNode& node : backup.other_tags) names.insert(node.tag.name);
  std::vector<Definitions> alike;  // of one form: no id depends on the choice
  for (const std::string& name : names) {
    const GivenTag* const given = call.answers.Find(name);
    if (given && given->defined) continue;
    const Definitions definitions = backup.DefinitionsOf(name);
    const bool same_form = HaveForm(definitions, FormOf(definitions.front()));
    // A tag in the registry keeps its definition, unless it was never used in its form.
    const auto keeps = [&](const TagDefinition& tag) {
      return tag.name == name && (same_form || tag.MayHaveIssued());
    };
    const bool kept = !call.ledgers.replaced && !call.ledgers.made.contains(name) &&
                      std::ranges::any_of(audit.tags, keeps);
    if (kept) continue;
    if (same_form) {
      alike.push_back(definitions);
    } else {
      AskOfDefinition(definitions, open);
    }
  }
  if (alike.empty() || call.answers.any_definitions) return;
  if (alike.size() <= kAskedTagsMax) {
    for (const Definitions& definitions : alike) AskOfDefinition(definitions, open);
    return;
  }
  open.push_back(
      {Cat("documents have different definitions of ", alike.size(), " tags, such as '",
           alike.front().front().name,
           "', and none of them is known to be the latest; their ids have the same form, "
           "so the restore can take any of them, and you can edit the tags later"),
       {"definitions=any"}});
}

void AskOfShares(const Audit& audit, const RestoreCall& call, Questions& open) {
  const std::optional<Backup>& backup = call.ledgers.backup;
  const bool remakes = audit.meta && IsBeingMade(*audit.meta);
  if ((!call.is_lost && !remakes) || !backup || call.answers.lease_share) return;
  std::set<int64_t> shares{backup->root.lease_share};
  for (const ShareAsSeen& seen : backup->other_shares) shares.insert(seen.share);
  if (shares.size() < 2) return;
  std::string text;
  for (const int64_t share : shares) text += Cat(text.empty() ? "" : " or ", share);
  open.push_back({Cat("by documents of which none is known to be the latest, ", text,
                      " % of the machine ids are for leases; say which share the cluster had"),
                  {"lease_share=NUMBER"}});
}

}  // namespace firn
