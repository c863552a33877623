#include "registry/operate/restore/restore_tags.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "common/base/cat.h"
#include "common/tag/numbers_left.h"
#include "common/tag/tag_form.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore_command.h"
#include "registry/operate/restore_memory.h"

namespace firn {
namespace {

using How = RestoredTag::How;

RestoredTag Lifted(const TagDefinition& tag, const LedgerFacts& facts, WallMs now) {
  const int64_t known = HighestKnown(tag, facts);
  const int64_t high = LiftedTo(tag, known, facts, now);
  return {How::kLifted, tag.name, high, high - known,
          ReportedOf(tag.name, facts.reports).has_value()};
}

RestoredTag FromBackup(const TagDefinition& tag, const LedgerFacts& facts) {
  const bool reported = tag.HasLedger() && ReportedOf(tag.name, facts.reports).has_value();
  return {.how = How::kFromBackup, .tag = tag.name, .next = tag.start, .reported = reported};
}

// Restores the tag's form. If an earlier run of this restore has made the tag, also sets its ledger
// to the highest known number, which includes its own ledger if that is a number of the new form.
Status Reform(TagStore& store, const TagDefinition& tag, const MetaAsRead& frozen,
              const LedgerFacts& facts) {
  const auto made = facts.made.find(tag.name);
  const Result<StoredTag> there = store.Read(tag.name);
  if (made == facts.made.end() || !there.ok()) return store.Reform(tag, frozen);
  int64_t known = std::max(made->second, KnownOf(tag.name, facts).value_or(0));
  const int64_t next = there->tag().NextBegin();
  if (!there->tag().Dated() && !tag.Dated() && next < NumbersEnd(tag))
    known = std::max(known, next);
  return store.Reform(tag, frozen, tag.HasLedger() && known > 1 ? known : 0);
}

// Returns whether the tag gets the form in the backup. It does if ids are known: the registry may
// contain the form before the last edit, or that of a mistaken `firn init`. It also does if it is
// unused, and servers know it in the backup's form: they would refuse another one. If only the
// owner differs, a used tag keeps or gets it, but gets it only if an earlier run has made the tag.
bool TakesForm(const TagDefinition& there, const TagDefinition& saved, const LedgerFacts& facts) {
  const bool used = there.MayHaveIssued();
  const bool made = facts.made.contains(saved.name);
  const bool shown = saved.MayHaveIssued() || (!used && facts.ServersKnow(saved));
  if (LookAlike(there, saved)) return used ? made && MayBecome(there, saved) : shown;
  return shown || ((!used || made) && ReportedOf(saved.name, facts.reports) > 0);
}

Status ReformByBackup(TagStore& store, const std::vector<GivenTag>& said, const LedgerFacts& facts,
                      const MetaAsRead& frozen) {
  for (const TagNode& node : facts.backup->tags) {
    const std::string& name = node.tag.name;
    const auto defines = [&](const GivenTag& one) { return one.defined && one.tag.name == name; };
    if (!node.tag.HasLedger() || std::ranges::any_of(said, defines)) continue;
    const Result<StoredTag> there = store.Read(name);
    if (there.ok() && !TakesForm(there->tag(), node.tag, facts)) continue;
    FIRN_TRY(Reform(store, node.tag, frozen, facts));
  }
  return {};
}

// Removes the tags of an unused cluster that the documents contain, so that the tags in the
// documents can be created. Keeps tags that an earlier run has made.
Status EraseReplaced(BlockingCoordinator& registry, const MetaAsRead& frozen,
                     const LedgerFacts& facts) {
  for (const TagNode& node : facts.backup->tags) {
    if (facts.made.contains(node.tag.name)) continue;
    const WriteOutcome erased =
        registry.Multi({Write::Check(kMetaPath, frozen.version), EraCheck(frozen.meta.era),
                        Write::Erase(TagPath(node.tag.name), Write::kAnyVersion)});
    if (erased.status.code() != Code::kNotFound) FIRN_TRY(erased.status);
  }
  return {};
}

// Returns the definition of a missing tag, with a start that is above all known numbers by at least
// the gap. A dated tag is lifted even without known numbers: it may have issued some in the present
// period.
TagDefinition Remade(TagDefinition tag, const LedgerFacts& facts, WallMs now) {
  if (!tag.HasLedger()) {
    tag.start.reset();  // of a merged definition with a ledger
    return tag;
  }
  const std::optional<int64_t> known = KnownOf(tag.name, facts);
  if (!known && !tag.Dated()) return tag;
  tag.start = std::max(tag.start.value_or(1), LiftedTo(tag, known.value_or(1), facts, now));
  return tag;
}

// Returns the additional members of the node of a tag that this restore makes.
std::string MadeMark(const std::string& tag, const std::string& others, const LedgerFacts& facts) {
  return WithMade(others, facts.plan, KnownOf(tag, facts).value_or(1));
}

// Creates the tag above the known ledgers if it is missing. An existing tag is already lifted.
Status Remake(TagStore& store, const GivenTag& said, const MetaAsRead& frozen,
              const LedgerFacts& facts, WallMs now, std::vector<RestoredTag>& changes) {
  TagDefinition tag = said.tag;
  const TagNode* const saved = facts.Saved(tag.name);
  if (!store.Read(tag.name).ok()) {
    if (!said.defined && saved != nullptr) {  // the argument gives only its start
      tag = saved->tag;
      tag.start = said.tag.start;
    }
    tag = Remade(std::move(tag), facts, now);
  }
  FIRN_TRY(
      store.Remake(tag, frozen, MadeMark(tag.name, saved == nullptr ? "" : saved->others, facts)));
  changes.push_back({.how = How::kNamed, .tag = tag.name, .next = tag.start});
  return {};
}

// Returns the tags of the backup that neither the registry nor an argument contains. Excludes a tag
// that the registry shows as deleted, unless it ExistedAgain, and adds each of these to `changes`.
std::vector<const TagNode*> OnlyInBackup(const TagListing& listing,
                                         const std::vector<GivenTag>& said,
                                         const LedgerFacts& facts,
                                         std::vector<RestoredTag>& changes) {
  std::vector<const TagNode*> only;
  if (!facts.backup) return only;
  std::set<std::string> known;
  for (const StoredTag& stored : listing.tags) known.insert(stored.tag().name);
  for (const GivenTag& one : said) known.insert(one.tag.name);
  const std::set<std::string> deleted(listing.deleted.begin(), listing.deleted.end());
  for (const TagNode& node : facts.backup->tags) {
    const std::string& name = node.tag.name;
    if (known.contains(name)) continue;
    if (!deleted.contains(name) || ExistedAgain(name, facts)) {
      only.push_back(&node);
    } else {
      changes.push_back({.how = How::kDeleted, .tag = name});
    }
  }
  return only;
}

}  // namespace

Status LiftLedgers(BlockingCoordinator& registry, const LedgerFacts& facts,
                   std::vector<RestoredTag>& changes) {
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  for (const StoredTag& stored : listing.tags) {
    if (!stored.tag().HasLedger()) {
      FIRN_TRY(store.Lift(stored, 0));  // writes only a node at version -1
      continue;
    }
    changes.push_back(Lifted(stored.tag(), facts, now));
    FIRN_TRY(store.Lift(stored, *changes.back().next));
  }
  return {};
}

Status LiftAbove(BlockingCoordinator& registry, const std::vector<ProviderReport>& late,
                 const LedgerFacts& facts, std::vector<RestoredTag>& changes) {
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  for (const StoredTag& stored : listing.tags) {
    const TagDefinition& tag = stored.tag();
    const int64_t known = ReportedOf(tag.name, late).value_or(0);
    if (!tag.HasLedger() || known <= KnownOf(tag.name, facts).value_or(0)) continue;
    const int64_t high = LiftedTo(tag, known, facts, now);
    if (high <= tag.NextBegin()) continue;
    const int64_t end = NumbersEndFrom(tag, high);
    if (known < end && high >= end) {
      return Conflict(Cat("a server reports higher numbers of tag '", tag.name,
                          "' than before; run the command again"));
    }
    FIRN_TRY(store.Lift(stored, high));
    changes.push_back({.how = How::kLiftedLate, .tag = tag.name, .next = high});
  }
  return {};
}

Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<GivenTag>& said, LedgerFacts facts,
                   std::vector<RestoredTag>& changes) {
  TagStore store(registry);
  FIRN_ASSIGN(const RestoreMemoryAsRead remembered, ReadRestoreMemory(registry, frozen.meta));
  if (remembered.memory) facts.plan = remembered.memory->plan;
  FIRN_ASSIGN(const TagListing before, store.ReadAll());
  facts.made = MadeTags(before, facts.plan);
  if (facts.backup && facts.replaced) FIRN_TRY(EraseReplaced(registry, frozen, facts));
  for (const auto& [tag, defined] : said) {
    if (defined) FIRN_TRY(Reform(store, tag, frozen, facts));
  }
  if (facts.backup) FIRN_TRY(ReformByBackup(store, said, facts, frozen));
  FIRN_TRY(LiftLedgers(registry, facts, changes));
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  for (const GivenTag& one : said) FIRN_TRY(Remake(store, one, frozen, facts, now, changes));
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  for (const TagNode* const node : OnlyInBackup(listing, said, facts, changes)) {
    const TagDefinition tag = Remade(node->tag, facts, now);
    FIRN_TRY(store.Remake(tag, frozen, MadeMark(tag.name, node->others, facts)));
    changes.push_back(FromBackup(tag, facts));
  }
  return {};
}

Result<std::vector<RestoredTag>> PlanTags(BlockingCoordinator& registry,
                                          const std::vector<GivenTag>& said,
                                          const LedgerFacts& facts, WallMs now) {
  const Result<TagListing> read = TagStore(registry).ReadAll();
  const bool no_cluster = read.code() == Code::kNotFound || read.code() == Code::kCorrupt;
  if (!read.ok() && !no_cluster) return read.status();
  const TagListing listing = read.ok() ? *read : TagListing();
  std::set<std::string> present;
  std::vector<RestoredTag> changes;
  for (const StoredTag& stored : listing.tags) {
    present.insert(stored.tag().name);
    if (stored.tag().HasLedger()) changes.push_back(Lifted(stored.tag(), facts, now));
  }
  for (const auto& [tag, defined] : said) {
    const TagDefinition made = present.contains(tag.name) ? tag : Remade(tag, facts, now);
    changes.push_back({.how = How::kNamed, .tag = tag.name, .next = made.start});
  }
  for (const TagNode* const node : OnlyInBackup(listing, said, facts, changes)) {
    changes.push_back(FromBackup(Remade(node->tag, facts, now), facts));
  }
  return changes;
}

}  // namespace firn
