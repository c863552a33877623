#include "registry/operate/backup.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/hex.h"
#include "common/base/printed_command.h"
#include "common/json/json_object.h"
#include "common/time/civil_time.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/reserved.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"

namespace firn {
namespace {

constexpr char kFormatKey[] = "firn_backup";
constexpr char kChecksumKey[] = "checksum";
constexpr size_t kValuesMax = 4'000'000;

std::string_view TagNameIn(const TagNode& node) { return node.tag.name; }

// Of the document without the checksum, independently of spaces and line ends.
std::string ChecksumOf(Json document) {
  document.erase(kChecksumKey);
  return ToHex(Fnv1a(JsonText(document)));
}

Status CheckComplete(const Audit& audit) {
  if (!audit.meta) return NotFound("there is no cluster here");
  if (audit.Losses() == 0 && !audit.meta->frozen) return {};
  const std::vector<std::string> faults = audit.Faults();
  const std::string why = faults.empty() ? "it is frozen" : faults.front();
  return Conflict(Cat("the cluster has lost data, and a backup of it would be incomplete: ", why,
                      "; keep the last good backup, and repair the cluster: ",
                      PrintCommand(PrintedCommand::kRestore)));
}

// `audit` lists slots by rack and worker.
void AddMachines(const Audit& audit, Backup& backup) {
  std::vector<const AuditedSlot*> slots;
  for (const AuditedSlot& slot : audit.slots) slots.push_back(&slot);
  backup.root.workers = audit.workers();
  std::ranges::sort(slots, {}, &AuditedSlot::machine);
  for (const AuditedSlot* const slot : slots) {
    backup.root.Add(slot->machine, slot->record);
    if (slot->record.bound > WallMs())
      backup.bounds.emplace_back(slot->machine, slot->record.bound);
  }
}

Result<std::vector<TagNode>> ReadTags(BlockingCoordinator& registry) {
  FIRN_ASSIGN(TagListing listing, TagStore(registry).ReadAll());
  if (!listing.faults.empty()) return Corrupt(listing.faults.front());
  std::vector<TagNode> tags;
  for (StoredTag& stored : listing.tags) tags.push_back(std::move(stored.node));
  std::ranges::sort(tags, {}, TagNameIn);
  return tags;
}

Result<Json> Checked(std::string_view text) {
  Result<Json> document = ParseJson(text, kBackupBytesMax, kValuesMax);
  if (!document.ok()) return document.status().WithContext("not a complete backup");
  const auto number = document->at(kFormatKey).whole();
  if (!number || *number < 1) return Corrupt(Cat("not a backup: it has no \"", kFormatKey, "\""));
  if (*number > kBackupFormat) {
    return Invalid(Cat("the backup has format ", *number, ", and this program reads formats up to ",
                       kBackupFormat,
                       "; use the `firn` of the version that wrote it, or a newer one"));
  }
  const Json& sum = document->at(kChecksumKey);
  if (!sum.is_string())
    return Corrupt("the backup has no checksum, so its end is missing; use another backup");
  if (sum.text() != ChecksumOf(*document)) {
    return Corrupt(
        "the backup is damaged or was edited: its checksum does not match; use another backup");
  }
  return document;
}

Status ParseBounds(const Json& list, Backup& backup) {
  if (!list.is_array()) return Corrupt("\"machines\" is not a list");
  for (const Json& item : list) {
    int64_t machine = 0, bound = 0;
    JsonReader read(item);
    read.Number("machine", machine, 0, 65'535).Number("bound_ms", bound, 0, kRecordTimeMax.ms());
    FIRN_TRY(read.status());
    backup.bounds.emplace_back(MachineId(static_cast<uint32_t>(machine)), WallMs(bound));
  }
  return {};
}

Status ParseReached(const Json& list, Backup& backup) {
  if (!backup.composed) return {};
  if (!list.is_array()) return Corrupt("\"reached_ms\" is not a list");
  for (const Json& item : list) {
    const auto time = item.whole();
    if (!time || *time < 0 || *time > kRecordTimeMax.ms()) {
      return Corrupt("\"reached_ms\" contains no time");
    }
    backup.reached.emplace_back(*time);
  }
  std::ranges::sort(backup.reached);
  return {};
}

Result<std::vector<TagNode>> ParseTags(const Json& list) {
  if (!list.is_array()) return Corrupt("\"tags\" is not a list");
  std::vector<TagNode> tags;
  for (const Json& item : list) {
    std::string name;
    JsonReader read(item);
    read.Text("tag", name);
    const Json* const node = read.Find("node");
    FIRN_TRY(read.status());
    if (node == nullptr) return Corrupt("tag '" + name + "' has no node");
    Result<TagNode> tag = ReadTagNode(name, JsonText(*node));
    if (!tag.ok()) return tag.status().WithContext("tag '" + name + "'");
    tags.push_back(*std::move(tag));
  }
  std::ranges::stable_sort(tags, {}, TagNameIn);
  return tags;
}

Json JsonOf(const std::vector<TagNode>& nodes) {
  Json tags = Json::array();
  for (TagNode node : nodes) {
    if (!node.tag.HasLedger()) node.tag.start.reset();  // of a merged definition with a ledger
    const Result<std::string> data = WriteTagNode(node);
    if (!data.ok()) continue;  // it was read, so it can be written
    tags.push_back({{"tag", node.tag.name}, {"node", *ParseJson(*data, kTagNodeBytesMax)}});
  }
  return tags;
}

// Earlier versions ignore these members.
void AddDisagreements(const Backup& backup, Json& document) {
  if (backup.root_era_began) document["settings_era_began_ms"] = backup.root_era_began->ms();
  if (!backup.other_tags.empty()) document["other_tags"] = JsonOf(backup.other_tags);
  for (const auto& [era, version, share] : backup.other_shares) {
    document["other_shares"].push_back(
        {{"era", era.text()}, {"settings_version", version}, {"lease_share", share}});
  }
}

Status ParseDisagreements(const Json& document, Backup& backup) {
  int64_t root_began = -1;
  JsonReader read(document);
  FIRN_TRY(read.NumberIfAny("settings_era_began_ms", root_began, 0, kRecordTimeMax.ms()).status());
  if (root_began >= 0) backup.root_era_began = WallMs(root_began);
  if (document.contains("other_tags")) {
    FIRN_ASSIGN(backup.other_tags, ParseTags(document.at("other_tags")));
  }
  for (const TagNode& node : backup.other_tags) {
    if (backup.Find(node.tag.name) == nullptr) return Corrupt("\"tags\" lacks a tag");
  }
  if (!document.contains("other_shares")) return {};
  for (const Json& item : document.at("other_shares")) {
    ShareAsSeen seen;
    std::string era;
    JsonReader share(item);
    share.Text("era", era)
        .Number("settings_version", seen.version, INT64_MIN)
        .Number("lease_share", seen.share, 0, 100);
    FIRN_TRY(share.status());
    FIRN_ASSIGN(seen.era, Nonce::Parse(era));
    backup.other_shares.push_back(seen);
  }
  return {};
}

}  // namespace

const TagNode* Backup::Find(std::string_view tag) const {
  const auto found = std::ranges::lower_bound(tags, tag, {}, TagNameIn);
  return found != tags.end() && found->tag.name == tag ? &*found : nullptr;
}

std::vector<TagDefinition> Backup::DefinitionsOf(std::string_view tag) const {
  std::vector<TagDefinition> definitions;
  if (const TagNode* const node = Find(tag)) definitions.push_back(node->tag);
  for (const TagNode& node : std::ranges::equal_range(other_tags, tag, {}, TagNameIn)) {
    definitions.push_back(node.tag);
  }
  return definitions;
}

Result<Backup> ReadBackup(BlockingCoordinator& registry, std::string cluster, WallMs now) {
  FIRN_ASSIGN(const Audit audit, ReadAuditWithoutOwners(registry, now));
  FIRN_TRY(CheckComplete(audit));
  Backup backup{.cluster = std::move(cluster),
                .root = SettingsOf(*audit.meta, audit.meta_version, audit.settings)};
  backup.root.era_began = audit.era_began;
  AddMachines(audit, backup);
  FIRN_ASSIGN(backup.tags, ReadTags(registry));
  FIRN_ASSIGN(backup.taken, ReadRegistryClock(registry));
  FIRN_ASSIGN(const MetaAsRead after, ReadMeta(registry));
  const bool same = after.version == audit.meta_version && after.meta == *audit.meta;
  return same ? Result<Backup>(std::move(backup))
              : Unavailable("the cluster's root node changed while it was read; try again");
}

std::string FormatBackup(const Backup& backup) {
  Json document{{kFormatKey, backup.composed ? kBackupFormat : 1},
                {"cluster", backup.cluster},
                {"taken", FormatRfc3339(backup.taken)},
                {"taken_ms", backup.taken.ms()},
                {"cluster_format", ClusterMeta::kFormat}};
  if (backup.composed) {
    document["settings_known"] = backup.settings_known;
    document["tags_known"] = backup.tags_known;
    document["source"] = backup.checksum;
    Json& reached = document["reached_ms"] = Json::array();
    for (const WallMs time : backup.reached) reached.push_back(time.ms());
    AddDisagreements(backup, document);
  }
  document["root"] = *ParseJson(FormatRootSettings(backup.root), kRootSettingsBytesMax);
  Json& machines = document["machines"] = Json::array();
  for (const auto& [machine, bound] : backup.bounds) {
    machines.push_back({{"machine", machine.value()}, {"bound_ms", bound.ms()}});
  }
  document["tags"] = JsonOf(backup.tags);
  document[kChecksumKey] = ChecksumOf(document);
  return JsonText(document, 1) + "\n";
}

Result<Backup> ParseBackup(std::string_view text) {
  FIRN_ASSIGN(const Json document, Checked(text));
  int64_t taken = 0, cluster_format = 0;
  Backup backup;
  JsonReader read(document);
  read.Text("cluster", backup.cluster, kRecordBytesMax)
      .Number("taken_ms", taken, 0, kRecordTimeMax.ms())
      .Number("cluster_format", cluster_format, 1)
      .FlagIfAny("settings_known", backup.settings_known)
      .FlagIfAny("tags_known", backup.tags_known);
  FIRN_TRY(read.status());
  if (cluster_format > ClusterMeta::kFormat) {
    return Invalid(Cat("the backup is of a cluster of format ", cluster_format,
                       ", and this program supports formats up to ", ClusterMeta::kFormat,
                       "; use a newer version of `firn`"));
  }
  backup.taken = WallMs(taken);
  backup.composed = document.at(kFormatKey).whole() > 1;
  backup.checksum = backup.composed ? document.at("source").text() : "";
  if (backup.checksum.empty()) backup.checksum = ChecksumOf(document);
  FIRN_TRY(ParseReached(document.at("reached_ms"), backup));
  FIRN_ASSIGN(backup.root, ParseRootSettings(JsonText(document.at("root"))));
  FIRN_TRY(ParseBounds(document.at("machines"), backup));
  FIRN_ASSIGN(backup.tags, ParseTags(document.at("tags")));
  FIRN_TRY(ParseDisagreements(document, backup));
  return backup;
}

}  // namespace firn
