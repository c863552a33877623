#include "registry/operate/restore_policy.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/freeze.h"

namespace firn {
namespace {

bool Says(const std::vector<GivenTag>& tags, const std::string& name) {
  return std::ranges::any_of(tags, [&name](const GivenTag& one) { return one.tag.name == name; });
}

// Adds the backup's bounds with their machine ids, which are then known to be used, or retired if
// their bounds are implausible; and the highest plausible one, which the floor must cover. After a
// restore ids run ahead of all clocks, and the backup tells how far.
void AddBounds(const Backup& backup, RestoreFacts& facts) {
  WallMs highest = backup.root.IdsBy(facts.now);
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

// Adds the tag to --tag_high.
void AddUnknownHigh(const std::string& tag, RestoreArguments& ran) {
  const std::string flag = "--tag_high=", unknown = EncodeTagName(tag) + "=NUMBER";
  const auto said = std::ranges::find_if(
      ran.said_flags, [&flag](const std::string& one) { return one.starts_with(flag); });
  if (said == ran.said_flags.end()) {
    ran.said_flags.push_back(flag + unknown);
  } else {
    *said += (said->size() == flag.size() ? "" : ",") + unknown;
  }
}

Status CheckFrozenLedger(const Audit& audit, const RestoreCall& call, RestoreArguments ran) {
  if (!audit.meta || !audit.meta->frozen) return {};
  const auto tag = TagWhoseLedgerWentBack(audit.meta->reason);
  if (!tag || Says(call.tags, *tag) || KnownOf(*tag, call.ledgers)) return {};
  AddUnknownHigh(*tag, ran);
  return Conflict(
      Cat("not restored: the cluster was frozen because ", audit.meta->reason,
          ", and no running server reports that ledger. Start the servers, or give --from with a "
          "backup, or the highest number of the tag that its users have:\n",
          RestoreCommand(ran)));
}

Status CheckGapsFit(const Audit& audit, const RestoreCall& call, RestoreArguments ran) {
  std::vector<TagDefinition> tags = audit.tags;
  for (const auto& [tag, defined] : call.tags) {
    if (defined) tags.push_back(tag);
  }
  if (call.ledgers.backup) {
    for (const TagNode& node : call.ledgers.backup->tags) tags.push_back(node.tag);
  }
  for (const TagDefinition& tag : tags) {
    const int64_t known = HighestKnown(tag, call.ledgers), end = NumbersEnd(tag);
    if (!tag.HasLedger() || known >= end || LiftedTo(tag, known, call.ledgers) < end) continue;
    const std::string prefix = EncodeTagName(tag.name) + "=";
    std::erase_if(ran.said_tags, [&](const auto& said) { return said.starts_with(prefix); });
    ran.unread.push_back(tag);  // with its form: the node may be lost
    ran.unread.back().high = known;
    return Conflict(
        Cat("not restored: ", SumOrMax(known, GapOf(tag, call.ledgers.wanted_gap)), ", where tag '",
            tag.name, "' would continue, is beyond its last number, ", end - 1,
            ". Give the next number that it may issue, above all that its users have:\n",
            RestoreCommand(ran)));
  }
  return {};
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
  const std::string& unstored = audit.unfinished->unstored;
  if (!unstored.empty() && unstored != ran.Digest()) {
    return Conflict(
        "not restored: a restore is unfinished whose flags and tags were too long for the registry "
        "to remember, and a run without them would leave out what only they say. Repeat that "
        "command word for word, or add --again to one that says at least as much");
  }
  for (const RestoreMemory::Document& used : audit.unfinished->documents) {
    if (ran.Knows(used.checksum)) continue;
    return Conflict(Cat("not restored: a restore with ", used.path, ", a backup of ",
                        FormatRfc3339(used.taken),
                        ", is unfinished, and a run without it would leave out what only that file "
                        "contains. Repeat it, or add --again if the file is lost:\n",
                        RepairCommand(audit, std::move(place))));
  }
  return {};
}

Status CheckLostTags(const Audit& audit, const RestoreCall& call, RestoreArguments ran) {
  const std::optional<Backup>& backup = call.ledgers.backup;
  for (const auto& [name, seen] : audit.lost_tags) {
    if (seen == 0 || Says(call.tags, name) || (backup && backup->Find(name) != nullptr)) continue;
    TagDefinition& lost = ran.tags.emplace_back();
    lost.name = name;
    lost.high = seen;
  }
  if (ran.tags.empty()) return {};
  AddAudit(audit, ran);
  return Conflict(
      "the tags were not restored: the node of tag " + ran.tags.front().name +
      " is lost, and servers would freeze the cluster again. Add its next number, and its other "
      "fields as they were (a server's /v1/status and log show them), and disabled=true if it is "
      "no longer needed:\n" +
      RestoreCommand(ran));
}

Status CheckFactsSuffice(const Audit& audit, const RestoreCall& call, const RestoreArguments& ran) {
  FIRN_TRY(CheckLostTags(audit, call, ran));
  FIRN_TRY(CheckGapsFit(audit, call, ran));
  return CheckFrozenLedger(audit, call, ran);
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
  const auto& [tags, said, ledgers] = call;
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

}  // namespace firn
