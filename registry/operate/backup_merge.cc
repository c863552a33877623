#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/tag/tag_form.h"
#include "registry/cluster/reserved.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore_memory.h"

namespace firn {
namespace {

// Sorts the items, and keeps each that is below no other one.
template <typename Item, typename Below, typename Order>
void KeepHighest(std::vector<Item>& items, const Below& is_below, const Order& order) {
  std::ranges::sort(items, {}, order);
  const auto repeated = std::ranges::unique(items, {}, order);
  items.erase(repeated.begin(), repeated.end());
  std::vector<Item> kept;
  for (const Item& item : items) {
    const auto above = [&](const Item& other) { return is_below(item, other); };
    if (std::ranges::none_of(items, above)) kept.push_back(item);
  }
  items = std::move(kept);
}

// --- settings ------------------------------------------------------------------------------------

WallMs EraBegan(const Backup& backup) {
  return backup.root_era_began.value_or(backup.root.era_began);
}

// Orders backups by the settings of which the merge takes the later ones.
auto OrderOf(const Backup& backup) {
  const RootSettings& root = backup.root;
  return std::tuple(backup.settings_known, !root.layout.empty(), EraBegan(backup), root.era,
                    root.version, backup.cluster);
}

bool IsBelow(const ShareAsSeen& a, const ShareAsSeen& b) {
  const bool recorded =
      a.version != RootSettings::kNotRecorded && b.version != RootSettings::kNotRecorded;
  return a.era == b.era && recorded && a.version < b.version;
}

void AddShares(const Backup& backup, std::vector<ShareAsSeen>& shares) {
  const RootSettings& root = backup.root;
  std::ranges::copy(backup.other_shares, std::back_inserter(shares));
  if (!backup.settings_known) return;
  shares.push_back({root.era, root.settings_version, root.lease_share});
}

// Gives the merged settings the highest share of their era. All others are `other_shares`.
void JoinShares(const Backup& a, const Backup& b, Backup& merged) {
  std::vector<ShareAsSeen>& shares = merged.other_shares;
  shares.clear();
  AddShares(a, shares);
  AddShares(b, shares);
  KeepHighest(shares, IsBelow, [](const ShareAsSeen& seen) { return seen; });
  const auto chosen = std::find_if(shares.rbegin(), shares.rend(), [&](const ShareAsSeen& seen) {
    return seen.era == merged.root.era;
  });
  if (chosen == shares.rend()) return;
  merged.root.lease_share = chosen->share;
  merged.root.settings_version = chosen->version;
  shares.erase(std::next(chosen).base());
}

// How far ids are ahead of the clock since the last restore; the highest of two.
Milliseconds LeadOf(const RootSettings& root) {
  return root.era_began == WallMs() ? Milliseconds::min() : root.floor - root.era_began;
}

void JoinMachines(const RootSettings& a, const RootSettings& b, RootSettings& joined) {
  std::map<MachineId, std::string> held;  // retired: empty, which is stronger than reserved
  for (const RootSettings* const one : {&a, &b}) {
    for (const auto& [first, last, used_by] : one->reserved) {
      for (uint32_t id = first.value(); id <= last.value(); ++id) {
        std::string& by = held[MachineId(id)];
        by = std::max(by, used_by);
      }
    }
  }
  for (const RootSettings* const one : {&a, &b}) {
    for (const MachineId machine : one->retired) held[machine].clear();
  }
  joined.reserved.clear();
  joined.retired.clear();
  for (const auto& [machine, used_by] : held) {
    const std::string owner = used_by.empty() ? "" : std::string(kReservedPrefix) + used_by;
    joined.Add(machine, {.owner = owner, .retired = true});
  }
}

RootSettings JoinRoots(const RootSettings& newer, const RootSettings& older) {
  RootSettings joined = newer;
  joined.workers = std::max(newer.workers, older.workers);
  joined.window = std::max(newer.window, older.window);
  const bool known = newer.ids_since != WallMs() && older.ids_since != WallMs();
  joined.ids_since = known ? std::min(newer.ids_since, older.ids_since)
                           : std::max(newer.ids_since, older.ids_since);
  joined.floor = std::max(newer.floor, older.floor);
  const Milliseconds lead = std::max(LeadOf(newer), LeadOf(older));
  joined.era_began = lead == Milliseconds::min() ? WallMs() : joined.floor - lead;
  JoinMachines(newer, older, joined);
  return joined;
}

// Returns whether the list of tags is incomplete. A list that is missing only adds no tags.
bool HasCutList(const Backup& backup) { return !backup.tags_known && !backup.tags.empty(); }

// --- tags ----------------------------------------------------------------------------------------

// A definition of a tag. Its node has no start, and as `high` the sum of its ledger, or its start
// if that is higher: a restore makes a tag again with a start above all known numbers.
struct Defined {
  explicit Defined(TagNode defined) : node(std::move(defined)) {
    if (node.tag.high > 0) node.tag.high = static_cast<int64_t>(node.ledger_sum());
    if (node.tag.start > 1) node.tag.high = std::max(node.tag.high, *node.tag.start);
    node.tag.start.reset();
    node.returned = 0;
    form = FormOf(node.tag);
    TagNode plain = node;
    plain.tag.high = 0;
    text = WriteTagNode(plain).value_or("");
    plain.stand_in = {};
    plain.others = WithoutMade(plain.others);
    meaning = WriteTagNode(plain).value_or("");
  }
  auto order() const { return std::tie(node.tag.high, text); }

  TagNode node;
  std::string form;
  std::string text;
  std::string meaning;  // without members that no operator defines
};

// A form in which ids may exist is above all others. A ledger only rises.
bool IsBelow(const Defined& a, const Defined& b) {
  const bool issued = a.node.tag.MayHaveIssued();
  if (issued != b.node.tag.MayHaveIssued()) return !issued;
  if (a.form != b.form) return false;
  if (a.node.tag.high != b.node.tag.high) return a.node.tag.high < b.node.tag.high;
  return a.meaning == b.meaning && a.text < b.text;
}

auto RankOf(const Defined& defined) {
  return std::tuple(defined.node.tag.MayHaveIssued(), defined.order());
}

// Raises the ledger to that of `other`. Both sums of a ledger only rise.
void RaiseLedger(TagNode& node, const TagNode& other) {
  const uint64_t sum = std::max(node.ledger_sum(), other.ledger_sum());
  node.tag.start = std::max(node.tag.start, other.tag.start);
  node.tag.high = std::max(node.tag.high, other.tag.high);
  node.returned = static_cast<int64_t>(sum - static_cast<uint64_t>(node.tag.high));
}

// One tag in all backups.
struct Seen {
  std::vector<const TagNode*> nodes{};
  std::vector<const TagNode*> others{};
};

void JoinTag(const Seen& seen, Backup& merged) {
  TagNode ledger;
  std::vector<Defined> definitions;
  for (const TagNode* const node : seen.nodes) {
    RaiseLedger(ledger, *node);
    definitions.emplace_back(*node);
  }
  for (const TagNode* const node : seen.others) definitions.emplace_back(*node);
  KeepHighest(
      definitions, [](const Defined& a, const Defined& b) { return IsBelow(a, b); }, RankOf);
  TagNode chosen = std::move(definitions.back().node);
  definitions.pop_back();
  chosen.tag.high = 0;
  RaiseLedger(chosen, ledger);
  merged.tags.push_back(std::move(chosen));
  for (Defined& other : definitions) merged.other_tags.push_back(std::move(other.node));
}

void JoinTags(const Backup& a, const Backup& b, Backup& merged) {
  std::map<std::string_view, Seen> tags;
  for (const Backup* const one : {&a, &b}) {
    for (const TagNode& node : one->tags) tags[node.tag.name].nodes.push_back(&node);
    for (const TagNode& node : one->other_tags) tags[node.tag.name].others.push_back(&node);
  }
  merged.tags.clear();
  merged.other_tags.clear();
  for (const auto& [name, seen] : tags) {
    if (seen.nodes.size() > 1 && (!seen.others.empty() || *seen.nodes[0] != *seen.nodes[1])) {
      JoinTag(seen, merged);
      continue;
    }
    merged.tags.push_back(*seen.nodes.front());
    for (const TagNode* const other : seen.others) merged.other_tags.push_back(*other);
  }
}

}  // namespace

Status CheckAgree(const Backup& a, const Backup& b) {
  if (a.root.uuid != b.root.uuid) {
    return Conflict(Cat("they are of different clusters, ", std::min(a.root.uuid, b.root.uuid),
                        " and ", std::max(a.root.uuid, b.root.uuid)));
  }
  if (a.root.layout.empty() || b.root.layout.empty()) return {};
  const auto of = [](const Backup& one) { return std::tie(one.root.layout, one.root.rack_bits); };
  const bool same =
      !a.settings_known || !b.settings_known || a.root.default_strategy == b.root.default_strategy;
  if (of(a) == of(b) && same) return {};
  return Conflict(Cat("they show cluster ", a.root.uuid, " with two ",
                      same ? "layouts" : "default strategies",
                      ", and ids may exist in both; use those that are right"));
}

Backup AddKept(Backup known, Backup kept) {
  if (known.root.uuid != kept.root.uuid) return known;
  const auto present = [&known](const TagNode& node) {
    const TagNode* const now = known.Find(node.tag.name);
    if (now == nullptr || FormOf(now->tag) == FormOf(node.tag)) return now;
    const bool edited = now->tag.MayHaveIssued() && MayBecome(node.tag, now->tag);
    return edited ? now : nullptr;
  };
  if (HasCutList(known)) kept.tags_known = false;
  std::erase_if(kept.other_tags, present);
  std::set<std::string> replaced;
  for (TagNode& node : kept.tags) {
    const TagNode* const now = present(node);
    if (now == nullptr) continue;
    TagNode joined = node;  // `known` lacks the members of later versions
    joined.tag = now->tag;
    RaiseLedger(joined, node);
    node = std::move(joined);
    replaced.insert(node.tag.name);
  }
  std::erase_if(known.tags,
                [&replaced](const TagNode& node) { return replaced.contains(node.tag.name); });
  if (!CheckAgree(known, kept).ok()) {
    kept.settings_known = false;
    kept.root.layout.clear();
  }
  return MergeBackups(known, kept).value_or(known);
}

Result<Backup> MergeBackups(const Backup& a, const Backup& b) {
  FIRN_TRY(CheckAgree(a, b));
  const auto& [older, newer] = std::minmax(
      a, b, [](const Backup& one, const Backup& other) { return OrderOf(one) < OrderOf(other); });
  Backup merged = newer;
  merged.taken = std::max(a.taken, b.taken);
  merged.checksum = std::max(a.checksum, b.checksum);
  merged.root = JoinRoots(newer.root, older.root);
  merged.root_era_began = EraBegan(newer);
  JoinShares(a, b, merged);
  if (merged.root_era_began == merged.root.era_began) merged.root_era_began.reset();
  merged.composed = a.composed && b.composed;
  merged.reached.clear();
  std::ranges::set_union(a.reached, b.reached, std::back_inserter(merged.reached));
  merged.tags_known = (a.tags_known || b.tags_known) && !HasCutList(a) && !HasCutList(b);
  std::map<MachineId, WallMs> bounds(a.bounds.begin(), a.bounds.end());
  for (const auto& [machine, bound] : b.bounds) {
    WallMs& highest = bounds[machine];
    highest = std::max(highest, bound);
  }
  merged.bounds.assign(bounds.begin(), bounds.end());
  JoinTags(a, b, merged);
  return merged;
}

}  // namespace firn
