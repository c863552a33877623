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
  std::ranges::sort(tags, {},
                    [](const TagNode& node) -> const std::string& { return node.tag.name; });
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

Status ParseTags(const Json& list, Backup& backup) {
  if (!list.is_array()) return Corrupt("\"tags\" is not a list");
  for (const Json& item : list) {
    std::string name;
    JsonReader read(item);
    read.Text("tag", name);
    const Json* const node = read.Find("node");
    FIRN_TRY(read.status());
    if (node == nullptr) return Corrupt("tag '" + name + "' has no node");
    Result<TagNode> tag = ReadTagNode(name, JsonText(*node));
    if (!tag.ok()) return tag.status().WithContext("tag '" + name + "'");
    backup.tags.push_back(*std::move(tag));
  }
  return {};
}

// --- merging -------------------------------------------------------------------------------------

// Orders backups by the settings of which the merge takes the later ones.
WallMs EraBegan(const Backup& backup) {
  return backup.root_era_began.value_or(backup.root.era_began);
}
WallMs RootTaken(const Backup& backup) {
  return backup.root_taken == WallMs() ? backup.taken : backup.root_taken;
}
auto OrderOf(const Backup& backup) {
  const RootSettings& root = backup.root;
  return std::tuple(backup.settings_known, !root.layout.empty(), EraBegan(backup), root.era.text(),
                    root.version, RootTaken(backup), root.lease_share, backup.cluster);
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

WallMs TakenOf(const Backup& backup, const std::string& tag) {
  const auto found = backup.tags_taken.find(tag);
  return found == backup.tags_taken.end() ? backup.taken : found->second;
}

// A form in which ids may exist comes before all others; then the one with the highest ledger.
auto OrderOf(const TagNode& node, WallMs taken) {
  TagNode form = node;
  form.returned = form.tag.high = 0;
  form.tag.start.reset();
  return std::tuple(node.tag.MayHaveIssued(), node.ledger_sum(), taken,
                    WriteTagNode(form).value_or(""));
}

// The node of the later order, with the ledgers of both. Both sums of a ledger only rise.
TagNode JoinTags(const TagNode& later, const TagNode& earlier) {
  TagNode joined = later;
  joined.tag.start = std::max(later.tag.start, earlier.tag.start);
  joined.tag.high = std::max(later.tag.high, earlier.tag.high);
  const uint64_t sum = std::max(later.ledger_sum(), earlier.ledger_sum());
  joined.returned = static_cast<int64_t>(sum - static_cast<uint64_t>(joined.tag.high));
  return joined;
}

Status MergeTags(const Backup& a, const Backup& b, Backup& merged) {
  std::map<std::string, std::pair<TagNode, WallMs>> tags;
  for (const TagNode& node : a.tags) tags[node.tag.name] = {node, TakenOf(a, node.tag.name)};
  for (const TagNode& node : b.tags) {
    const std::pair read(node, TakenOf(b, node.tag.name));
    const auto [known, is_new] = tags.emplace(node.tag.name, read);
    if (is_new) continue;
    const auto& [other, other_taken] = known->second;
    const bool both_issued = node.tag.MayHaveIssued() && other.tag.MayHaveIssued();
    if (both_issued && FormOf(node.tag) != FormOf(other.tag)) {
      return Conflict(Cat("they contain tag '", node.tag.name,
                          "' in two forms, and ids may exist in both; use one of the files, and "
                          "add the numbers of the other with --set=TAG.high"));
    }
    const bool is_later = OrderOf(node, read.second) > OrderOf(other, other_taken);
    known->second = is_later ? std::pair(JoinTags(node, other), read.second)
                             : std::pair(JoinTags(other, node), other_taken);
  }
  merged.tags.clear();
  merged.tags_taken.clear();
  for (auto& [name, read] : tags) {
    if (read.second != merged.taken) merged.tags_taken.emplace(name, read.second);
    merged.tags.push_back(std::move(read.first));
  }
  return {};
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

Result<Backup> MergeBackups(const Backup& a, const Backup& b) {
  FIRN_TRY(CheckAgree(a, b));
  const auto& [older, newer] = std::minmax(
      a, b, [](const Backup& one, const Backup& other) { return OrderOf(one) < OrderOf(other); });
  Backup merged = newer;
  merged.taken = std::max(a.taken, b.taken);
  merged.checksum = std::max(a.checksum, b.checksum);
  merged.root_taken = RootTaken(newer);
  if (merged.root_taken == merged.taken) merged.root_taken = WallMs();
  merged.root = JoinRoots(newer.root, older.root);
  merged.root_era_began = EraBegan(newer);
  if (merged.root_era_began == merged.root.era_began) merged.root_era_began.reset();
  merged.composed = a.composed && b.composed;
  merged.reached.clear();
  std::ranges::set_union(a.reached, b.reached, std::back_inserter(merged.reached));
  merged.tags_known = a.tags_known || b.tags_known;
  std::map<MachineId, WallMs> bounds(a.bounds.begin(), a.bounds.end());
  for (const auto& [machine, bound] : b.bounds) {
    WallMs& highest = bounds[machine];
    highest = std::max(highest, bound);
  }
  merged.bounds.assign(bounds.begin(), bounds.end());
  FIRN_TRY(MergeTags(a, b, merged));
  return merged;
}

const TagNode* Backup::Find(std::string_view tag) const {
  const auto found = std::ranges::lower_bound(
      tags, tag, {}, [](const TagNode& node) -> std::string_view { return node.tag.name; });
  return found != tags.end() && found->tag.name == tag ? &*found : nullptr;
}

Result<Backup> ReadBackup(BlockingCoordinator& registry, std::string cluster, WallMs now) {
  FIRN_ASSIGN(const Audit audit, ReadAudit(registry, now));
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
  }
  document["root"] = *ParseJson(FormatRootSettings(backup.root), kRootSettingsBytesMax);
  Json& machines = document["machines"] = Json::array();
  for (const auto& [machine, bound] : backup.bounds) {
    machines.push_back({{"machine", machine.value()}, {"bound_ms", bound.ms()}});
  }
  Json& tags = document["tags"] = Json::array();
  for (const TagNode& node : backup.tags) {
    const Result<std::string> data = WriteTagNode(node);
    if (!data.ok()) continue;  // it was read, so it can be written
    tags.push_back({{"tag", node.tag.name}, {"node", *ParseJson(*data, kTagNodeBytesMax)}});
  }
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
  FIRN_TRY(ParseTags(document.at("tags"), backup));
  std::ranges::sort(backup.tags, {},
                    [](const TagNode& node) -> const std::string& { return node.tag.name; });
  return backup;
}

}  // namespace firn
