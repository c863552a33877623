#include "registry/cluster/tag_store.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/id/layout.h"
#include "common/json/json.h"
#include "common/tag/obfuscated_end.h"
#include "common/tag/tag_diff.h"
#include "common/tag/tag_form.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/records.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// Each multi begins with the check of the root node.
constexpr int kRootIndex = 0;

std::string TagText(std::string_view name) { return "tag '" + std::string(name) + "'"; }

Status MayBeObfuscated(const MetaAsRead& meta, const TagDefinition& tag) {
  if (meta.meta.default_strategy.empty() || !tag.HasPlugin("obfuscate")) return {};
  return Invalid(
      TagText(tag.name) +
      " cannot be obfuscated: this cluster serves undefined tags, so plain ids may have been "
      "issued under its name");
}

Status MayWrite(const MetaAsRead& meta, const TagDefinition& tag) {
  if (meta.meta.frozen) {
    return Conflict(AskForRestore("the cluster is frozen: " + meta.meta.reason));
  }
  if (meta.version == kUnguardedVersion)
    return Conflict(UnguardedVersionFault("the cluster's root node"));
  return MayBeObfuscated(meta, tag);
}

Status HoldsIds(BlockingCoordinator& registry, const MetaAsRead& meta, const TagDefinition& tag) {
  const Result<Layout> layout = Layout::Parse(meta.meta.layout);
  if (!layout.ok() || !ObfuscatedEnd(tag, *layout)) return {};
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  return CheckObfuscatedEnd(tag, *layout, now);
}

// A start in a later period would keep the tag from issuing numbers until then.
Status MayStart(BlockingCoordinator& registry, const MetaAsRead& meta, const TagDefinition& tag) {
  if (tag.HasLedger()) {
    FIRN_TRY(LimitOf(meta.meta).CheckEnd(tag.NextBegin()).WithContext(TagText(tag.name)));
  }
  const std::optional<DatedNumbers> numbers = tag.Dated();
  if (!numbers || tag.start.value_or(1) == 1) return {};
  FIRN_ASSIGN(const TimeZone zone, TimeZone::Load(tag.zone));
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  const int64_t period = numbers->PeriodAt(now, zone);
  if (numbers->PeriodOf(*tag.start) <= period) return {};
  return Invalid(Cat(TagText(tag.name), ": start: ", *tag.start, " is in a future period; the ",
                     "current one is ", period, " in ", tag.zone));
}

// A tag that is created after a loss of data may have issued the numbers below its start. The
// ledger records that, or an edit could change their form and lower the start.
TagDefinition WithLedgerAtStart(TagDefinition tag) {
  tag.high = tag.start.value_or(0);
  return tag;
}

// Among the members that versions keep without knowing them.
constexpr const char* kRetired = "retired";

void MarkRetired(TagNode& node, bool retired) {
  Json others = Json::object();
  if (const auto kept = ParseJson(node.others, kTagNodeBytesMax); kept.ok()) others = *kept;
  if (retired) {
    others[kRetired] = true;
  } else {
    others.erase(kRetired);
  }
  node.others = others.empty() ? "" : JsonText(others);
}

bool OnlyLedgerMoved(const StoredTag& before, const StoredTag& now) {
  return before.stat.created_zxid == now.stat.created_zxid &&
         before.meta_version == now.meta_version && before.node.others == now.node.others &&
         WithLedgerOf(now.tag(), before.tag()) == now.tag();
}

// Returns whether the state of the ledger's standing in for the store is still of use after an
// edit.
bool KeepsStandIn(const TagDefinition& before, const TagDefinition& after) {
  return after.store == before.store && after.when_store_is_away == StoreAway::kLedger;
}

}  // namespace

bool IsRetired(const TagNode& node) {
  if (!node.tag.disabled || node.others.empty()) return false;
  const auto others = ParseJson(node.others, kTagNodeBytesMax);
  return others.ok() && others->contains(kRetired);
}

Result<TagListing> TagStore::ReadAll() {
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
  const auto names = registry_.List(std::string(kTagsPath));
  if (names.code() == Code::kNotFound) return TagListing{};
  if (!names.ok()) return names.status().WithContext("listing the tags");
  TagListing listing;
  for (const std::string& component : *names) {
    const Result<std::string> name = DecodeTagName(component);
    if (!name.ok()) {
      listing.faults.push_back(name.status().WithContext(component).message());
      continue;
    }
    Result<StoredTag> stored = ReadNode(*name, meta);
    if (stored.ok() && stored->node.deleted) {
      listing.deleted.push_back(*name);
    } else if (stored.ok()) {
      listing.tags.push_back(*std::move(stored));
    } else if (stored.code() == Code::kCorrupt) {
      listing.faults.push_back(stored.status().message());
      listing.unreadable.push_back(*name);
    } else if (stored.code() != Code::kNotFound) {  // not found: deleted since it was listed
      return stored.status();
    }
  }
  return listing;
}

Result<StoredTag> TagStore::Read(std::string_view name) {
  FIRN_TRY(CheckTagName(name));
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
  return ReadTag(name, meta);
}

Result<StoredTag> TagStore::ReadTag(std::string_view name, const MetaAsRead& meta) {
  Result<StoredTag> stored = ReadNode(name, meta);
  if (stored.ok() && stored->node.deleted) return NotFound(TagText(name) + " does not exist");
  return stored;
}

// Also returns deleted tags.
Result<StoredTag> TagStore::ReadNode(std::string_view name, const MetaAsRead& meta) {
  const Result<Node> node = registry_.Read(TagPath(name));
  if (node.code() == Code::kNotFound) return NotFound(TagText(name) + " does not exist");
  if (!node.ok()) return node.status().WithContext("reading " + TagText(name));
  Result<TagNode> tag = ReadTagNode(name, node->data);
  if (!tag.ok()) return tag.status().WithContext(TagText(name));
  return StoredTag{*std::move(tag), node->stat, meta.version, meta.meta.era};
}

Status TagStore::Create(const TagDefinition& tag) {
  FIRN_TRY(CheckTag(tag));
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
  FIRN_TRY(MayWrite(meta, tag));
  const bool restored = meta.meta.floor > WallMs();
  if (restored && tag.HasLedger() && !tag.start) {
    return Invalid(TagText(tag.name) +
                   " needs an explicit start: this cluster has lost data, and a tag of this name "
                   "may have issued numbers before; start=1 if it has not");
  }
  FIRN_TRY(MayStart(registry_, meta, tag));
  FIRN_TRY(HoldsIds(registry_, meta, tag));
  TagDefinition made = WithLedgerAtStart(tag);
  if (!restored || made.high == 1) made.high = 0;  // no number was ever issued
  const Result<StoredTag> before = ReadNode(tag.name, meta);
  if (before.ok() && before->node.deleted) {
    return Overwrite(*before, {std::move(made)}).WithContext("creating " + TagText(tag.name));
  }
  FIRN_ASSIGN(const std::string data, WriteTagNode({std::move(made)}));
  FIRN_TRY(EnsureFolder());
  const std::string path = TagPath(tag.name);
  const Status sent =
      Send({Write::Check(kMetaPath, meta.version), Write::Create(path, data, Lifetime::kPersistent),
            EraCheck(meta.meta.era)},
           path, data);
  return sent.WithContext("creating " + TagText(tag.name));
}

Status TagStore::Replace(const StoredTag& read, TagDefinition after) {
  FIRN_TRY(CheckEdit(read.tag(), WithLedgerOf(read.tag(), after)));
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
  FIRN_TRY(MayWrite(meta, after));
  const bool starts = after.start != read.tag().start || !read.tag().HasLedger();
  if (starts) FIRN_TRY(MayStart(registry_, meta, after));
  if (FormOf(after) != FormOf(read.tag())) FIRN_TRY(HoldsIds(registry_, meta, after));
  return Put(read, std::move(after));
}

Status TagStore::Edit(const StoredTag& read, const TagDefinition& after) {
  Status done = Replace(read, after);
  for (int tries = 1; done.code() == Code::kConflict && tries < kEditTriesMax; ++tries) {
    FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
    FIRN_TRY(MayWrite(meta, after));
    FIRN_ASSIGN(const StoredTag now, ReadTag(after.name, meta));
    if (!OnlyLedgerMoved(read, now)) return done;
    done = Put(now, after);
  }
  return done;
}

// The write fails unless `read` was read under a root node that was not frozen.
Status TagStore::Put(const StoredTag& read, TagDefinition after) {
  after = WithLedgerOf(read.tag(), std::move(after));
  FIRN_TRY(CheckEdit(read.tag(), after));
  TagNode node = read.node;
  node.tag = after;
  if (!after.disabled) MarkRetired(node, false);
  if (!KeepsStandIn(read.tag(), after)) node.stand_in = {};
  return Overwrite(read, node).WithContext("changing " + TagText(after.name));
}

Status TagStore::Delete(std::string_view name) {
  return Disable(name, "deleting ", [name](TagNode& node) -> Status {
    if (node.tag.MayHaveIssued()) {
      return Conflict("ids of " + TagText(name) +
                      " may have been issued, and a new tag of that name would repeat them; "
                      "retire it instead");
    }
    node.stand_in = {};
    node.deleted = true;
    return {};
  });
}

Status TagStore::Retire(std::string_view name) {
  return Disable(name, "retiring ", [](TagNode& node) {
    MarkRetired(node, true);
    return Status();
  });
}

// Disables the tag after `change`, which is called again after each conflict.
Status TagStore::Disable(std::string_view name, std::string_view doing,
                         const std::function<Status(TagNode&)>& change) {
  FIRN_TRY(CheckTagName(name));
  Status done;
  for (int tries = 0; tries < kEditTriesMax; ++tries) {
    FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry_));
    FIRN_ASSIGN(const StoredTag read, ReadTag(name, meta));
    FIRN_TRY(MayWrite(meta, read.tag()));
    TagNode node = read.node;
    FIRN_TRY(change(node));
    node.tag.disabled = true;
    done = Overwrite(read, node);
    if (done.code() != Code::kConflict) break;
  }
  return done.WithContext(std::string(doing) + TagText(name));
}

// Replaces the node by `node` if it has not changed since it was read.
Status TagStore::Overwrite(const StoredTag& read, const TagNode& node) {
  const std::string& name = node.tag.name;
  if (read.stat.version == kUnguardedVersion) {
    return Conflict(UnguardedVersionFault("the node of " + TagText(name)));
  }
  FIRN_ASSIGN(const std::string data, WriteTagNode(node));
  const std::string path = TagPath(name);
  std::vector<Write> writes{Write::Check(kMetaPath, read.meta_version)};
  AddSet(writes, path, data, read.stat.version);
  writes.push_back(EraCheck(read.era));
  FIRN_TRY(Send(std::move(writes), path, data));

  const Result<Node> now = registry_.Read(path);
  if (now.ok() && now->stat.created_zxid != read.stat.created_zxid) {
    return Corrupt(TagText(name) + " was re-created by hand while it was being changed");
  }
  return {};
}

Status TagStore::Reform(const TagDefinition& tag, const MetaAsRead& frozen,
                        std::optional<int64_t> unissued) {
  const Result<StoredTag> there = ReadTag(tag.name, frozen);
  if (there.code() == Code::kNotFound || there.code() == Code::kCorrupt) return {};  // see Remake
  if (!there.ok()) return there.status();
  if (FormOf(there->tag()) == FormOf(tag)) return {};
  TagNode reformed = there->node;
  reformed.tag = WithLedgerOf(there->tag(), tag);
  reformed.tag.start = there->tag().start;
  if (unissued) {
    reformed.tag.high = *unissued;
    reformed.tag.start = tag.start;
  }
  if (!tag.HasLedger()) reformed.tag.start.reset();
  TagDefinition before = there->tag();
  if (!unissued && before.MayHaveIssued() && MayBecome(before, tag)) {  // the tag gets an owner
    before.buffer = tag.buffer;
    before.when_store_is_away = StoreAway::kRefuse;
    reformed.tag = before;
  }
  if (!KeepsStandIn(there->tag(), reformed.tag)) reformed.stand_in = {};
  const Status edit = unissued ? CheckTag(reformed.tag) : CheckEdit(before, reformed.tag);
  for (const Status& checked : {edit, MayBeObfuscated(frozen, tag)}) {
    if (!checked.ok()) return Conflict(checked.message());
  }
  return Rewrite(*there, reformed).WithContext("correcting the form of " + TagText(tag.name));
}

Status TagStore::Remake(const TagDefinition& tag, const MetaAsRead& frozen,
                        const std::string& others) {
  FIRN_TRY(CheckTag(tag));
  const std::string path = TagPath(tag.name);
  const Result<Node> node = registry_.Read(path);
  const bool absent = node.code() == Code::kNotFound;
  if (!node.ok() && !absent && node.code() != Code::kCorrupt) return node.status();
  const auto there = node.ok() ? ReadTagNode(tag.name, node->data) : node.status();
  if (there.ok() && !there->deleted) {
    return Lift({*there, node->stat, frozen.version, frozen.meta.era}, tag.start.value_or(0));
  }
  FIRN_ASSIGN(const std::string data, WriteTagNode({WithLedgerAtStart(tag), others}));
  FIRN_TRY(EnsureFolder());
  const Write write = absent ? Write::Create(path, data, Lifetime::kPersistent)
                             : Write::Set(path, data, Write::kAnyVersion);
  return Send({Write::Check(kMetaPath, frozen.version), write, EraCheck(frozen.meta.era)}, path,
              data)
      .WithContext("re-creating " + TagText(tag.name));
}

Status TagStore::Lift(const StoredTag& read, int64_t high) {
  // A write moves the node from this version to one that guards it.
  const bool unguarded = read.stat.version == kUnguardedVersion;
  if (high <= read.tag().high && !unguarded) return {};
  TagNode lifted = read.node;
  lifted.tag.high = std::max(high, lifted.tag.high);
  return Rewrite(read, lifted).WithContext("raising the ledger of " + TagText(read.tag().name));
}

// Used during a restore, so it does not check for the era's node.
Status TagStore::Rewrite(const StoredTag& read, const TagNode& node) {
  FIRN_ASSIGN(const std::string data, WriteTagNode(node));
  const std::string path = TagPath(read.tag().name);
  std::vector<Write> writes{Write::Check(kMetaPath, read.meta_version)};
  AddSet(writes, path, data, read.stat.version);
  return Send(std::move(writes), path, data);
}

Status TagStore::EnsureFolder() {
  const WriteOutcome made =
      registry_.Multi({Write::Create(std::string(kTagsPath), "", Lifetime::kPersistent)});
  // If the outcome is unknown, the next write shows whether the folder exists.
  const bool there = made.status.ok() || made.status.code() == Code::kConflict ||
                     made.status.code() == Code::kUnknown;
  return there ? Status() : made.status.WithContext("creating the folder of tags");
}

Status TagStore::Send(std::vector<Write> writes, const std::string& path, const std::string& data) {
  const bool with_era = writes.back().kind == Write::Kind::kCheck;
  const int last = static_cast<int>(writes.size()) - 1;
  const WriteOutcome outcome = registry_.Multi(std::move(writes));
  if (outcome.failed == kRootIndex || (with_era && outcome.failed == last)) {
    return Conflict("the cluster's root node has changed meanwhile; try again");
  }
  if (outcome.status.code() == Code::kConflict) {
    return Conflict("another process has just written it; try again");
  }
  if (outcome.status.code() != Code::kUnknown) return outcome.status;

  FIRN_TRY(registry_.Sync(path));
  const Result<Node> now = registry_.Read(path);
  if (now.ok() && now->data == data) return {};
  return Unknown("no answer came, and the node does not show the change; try again");
}

}  // namespace firn
