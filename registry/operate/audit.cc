#include "registry/operate/audit.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit_server.h"
#include "registry/operate/audit_slot.h"
#include "registry/operate/audit_tags.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

// Reads a tree into an Audit, part by part. A failure means that the registry does not answer.
//
// Servers continue while it reads: a claim that is renewed between two reads looks as if the
// registry had gone back in time. So servers' reports are read before the records, which are newer,
// and an apparent fault is read once more before it counts.
class Auditor {
 public:
  Auditor(BlockingCoordinator& registry, WallMs now) : registry_(registry), now_(now) {}

  Result<Audit> Run() {
    FIRN_TRY(ReadRoot());
    FIRN_TRY(ReadProviders());
    FIRN_TRY(ReadConfigurators());
    FIRN_TRY(ReadRacks());
    CompareRacks();
    CompareNonces();
    FIRN_TRY(CompareProviders());
    FIRN_TRY(ReadFolders());
    if (audit_.meta) FIRN_TRY(AuditTags(registry_, now_, audit_));
    return std::move(audit_);
  }

 private:
  void Fault(std::string sentence) { audit_.faults.push_back(std::move(sentence)); }
  // Adds a fault that a restore repairs.
  void Loss(std::string sentence) {
    Fault(std::move(sentence));
    ++audit_.losses;
  }
  // Adds a missing node. While a cluster is being made, that is not a loss.
  void Missing(std::string sentence) {
    if (!half_made_) Loss(std::move(sentence));
  }

  // Reads a node; empty if it is missing, or damaged, which is a loss.
  Result<std::optional<Node>> Find(const std::string& path) {
    Result<Node> node = registry_.Read(path);
    if (node.ok()) return std::optional<Node>(std::move(node).value());
    if (node.code() == Code::kNotFound) return std::optional<Node>();
    if (node.code() != Code::kCorrupt) return node.status();
    Loss(node.status().message());
    return std::optional<Node>();
  }

  Status ReadRoot();
  Status ReadEras(const Nonce& current);
  Status ReadFolders();
  Status ReadRacks();
  Status ReadRack(uint32_t rack);
  void Keep(SlotLook look);
  // Empty if there is no record.
  Result<std::optional<SlotLook>> LookAgain(Slot slot);
  Result<std::optional<SlotLook>> LookAt(Slot slot, const Result<Node>& record_node,
                                         const Result<Node>& live_node);
  Status ReadProviders();
  // Empty if there is none; kCorrupt if it cannot be parsed.
  Result<std::optional<ProviderReport>> ReportOf(const std::string& node_name);
  Status ReadConfigurators();
  void CompareRacks();
  void CompareNonces();
  Status CompareProviders();
  Status CompareHeld(const AuditedProvider& audited, const HeldMachine& held);
  AuditedSlot* SlotOf(MachineId machine);
  bool ClaimedByAnother(const std::string& address, WallMs bound, const AuditedSlot& slot) const;
  void CompareAgain(const std::string& address, WallMs bound, const AuditedSlot& slot);

  BlockingCoordinator& registry_;
  const WallMs now_;
  Audit audit_;
  std::vector<int64_t> created_;           // when each provider's node was, by the registry's order
  std::map<std::string, int64_t> latest_;  // ... the last of each address
  std::optional<RackSplit> split_;
  bool half_made_ = false;
};

Status Auditor::ReadRoot() {
  Result<MetaAsRead> root = ReadMeta(registry_);
  if (root.code() == Code::kUnavailable || root.code() == Code::kUnknown) return root.status();
  if (!root.ok()) {
    Loss(root.code() == Code::kNotFound ? "there is no cluster here" : root.status().message());
    return {};
  }
  const ClusterMeta& meta = root->meta;
  half_made_ = meta.frozen && meta.reason == kBeingMade;
  if (half_made_) {
    Fault(WhyFrozen(meta));
  } else if (meta.frozen) {
    Loss("the cluster is frozen: " + meta.reason);
  }
  if (root->version == kUnguardedVersion) Loss(RestsUnguarded("the cluster's root node"));
  if (meta.floor - now_ > kPoisonAhead) Fault("the floor is more than a day ahead");
  const Result<Layout> layout = Layout::Parse(meta.layout);
  if (!layout.ok()) {
    Fault("the layout cannot be read: " + layout.status().message());
  } else if (const auto split = RackSplit::Make(*layout, meta.rack_bits); split.ok()) {
    split_ = *split;
  } else {
    Fault(split.status().message());
  }
  FIRN_TRY(ReadEras(meta.era));
  audit_.meta = meta;
  audit_.meta_version = root->version;
  audit_.meta_set_at = root->modified;
  const size_t before = audit_.losses;
  FIRN_ASSIGN(const auto clock, Find(kClockPath));
  if (!clock && audit_.losses == before) Missing("the clock node is missing; no server can claim");
  return {};
}

// Writes sent before a loss of data take effect if the node of their era exists.
Status Auditor::ReadEras(const Nonce& current) {
  FIRN_ASSIGN(const auto names, registry_.List(kMetaPath));
  const std::string expected = EraPath(current).substr(1);
  for (const std::string& name : names) {
    const bool is_old = name != expected && name.starts_with(kEraPrefix);
    if (is_old) Loss(AskForRestore("the node of an earlier era still exists"));
  }
  const bool there = std::ranges::find(names, expected) != names.end();
  if (!there) Missing(AskForRestore("the node of the root node's era is missing"));
  return {};
}

// Folders have no data, but no node can be created below a damaged one.
Status Auditor::ReadFolders() {
  for (const std::string_view folder :
       {std::string_view(kMachinesPath), kTagsPath, kServicePath, kProvidersPath}) {
    FIRN_TRY(Find(std::string(folder)).status());
  }
  return {};
}

Status Auditor::ReadRacks() {
  if (!split_.has_value()) return {};
  const auto racks = registry_.List(kMachinesPath);
  if (racks.code() == Code::kNotFound) return {};
  if (!racks.ok()) return racks.status();
  for (const std::string& name : *racks) {
    const auto rack = ParseIndex<uint32_t>(name);
    if (rack.has_value() && *rack < split_->racks()) {
      FIRN_TRY(ReadRack(*rack));
    } else {
      Fault("there is a foreign node among the racks: " + Quoted(ChildPath(kMachinesPath, name)));
    }
  }
  std::sort(audit_.slots.begin(), audit_.slots.end(),
            [](const auto& a, const auto& b) { return a.slot < b.slot; });
  return {};
}

Status Auditor::ReadRack(uint32_t rack) {
  FIRN_TRY(Find(RackPath(rack)).status());
  FIRN_ASSIGN(const auto workers, registry_.List(RackPath(rack)));
  std::vector<Slot> slots;
  std::vector<std::string> paths;
  for (const std::string& name : workers) {
    const auto worker = ParseIndex<uint32_t>(name);
    if (!worker.has_value() || *worker >= split_->workers()) {
      Fault(Cat("there is a foreign node among the slots of rack ", rack, ": ",
                Quoted(ChildPath(RackPath(rack), name))));
      continue;
    }
    slots.push_back({rack, *worker});
    paths.push_back(SlotPath(slots.back()));
    paths.push_back(LivePath(slots.back()));
  }
  const std::vector<Result<Node>> nodes = registry_.ReadAll(paths);
  for (size_t i = 0; i < slots.size(); ++i) {
    FIRN_ASSIGN(auto look, LookAt(slots[i], nodes[2 * i], nodes[2 * i + 1]));
    if (look.has_value() && !look->faults.empty()) {
      FIRN_ASSIGN(look, LookAgain(slots[i]));
    }
    if (look.has_value()) Keep(std::move(*look));
  }
  return {};
}

void Auditor::Keep(SlotLook look) {
  for (const std::string& fault : look.faults) Fault(SlotText(look.slot.slot) + ": " + fault);
  const SlotUse use = look.slot.use;
  const bool lost = use == SlotUse::kUnreadable || use == SlotUse::kPoisoned;
  if (lost || look.slot.rests_unguarded()) ++audit_.losses;
  audit_.slots.push_back(std::move(look.slot));
}

Result<std::optional<SlotLook>> Auditor::LookAgain(Slot slot) {
  const std::vector<Result<Node>> nodes = registry_.ReadAll({SlotPath(slot), LivePath(slot)});
  return LookAt(slot, nodes[0], nodes[1]);
}

Result<std::optional<SlotLook>> Auditor::LookAt(Slot slot, const Result<Node>& record_node,
                                                const Result<Node>& live_node) {
  if (record_node.code() == Code::kNotFound) return std::optional<SlotLook>();
  AuditedSlot audited;
  audited.slot = slot;
  audited.machine = *split_->Join(slot.worker, slot.rack);
  for (const Result<Node>* node : {&record_node, &live_node}) {
    if (node->code() == Code::kCorrupt) {
      return std::optional(SlotLook{std::move(audited), {node->status().message()}});
    }
  }
  FIRN_TRY(record_node.status());
  std::optional<Node> live;
  if (live_node.code() != Code::kNotFound) {
    FIRN_TRY(live_node.status());
    live = *live_node;
  }
  return std::optional(InspectSlot(audited, *record_node, live, audit_.meta->floor, now_));
}

Status Auditor::ReadProviders() {
  const auto names = registry_.List(std::string(kProvidersPath));
  if (names.code() == Code::kNotFound) return {};
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const Result<Provider> provider = ParseProviderNodeName(name);
    if (!provider.ok()) {
      Fault(Cat("a provider's name cannot be read: ", Quoted(name), ": ",
                provider.status().message()));
      continue;
    }
    FIRN_ASSIGN(const auto node, Find(std::string(kProvidersPath) + "/" + name));
    if (!node.has_value()) continue;
    if (node->stat.ephemeral_owner == 0) {
      Fault(provider->address + ": its node is not ephemeral and will never disappear");
    }
    Result<ProviderReport> report = ParseReport(node->data);
    if (report.ok()) {
      audit_.providers.push_back({*provider, *std::move(report)});
      int64_t& latest = latest_[provider->address];
      latest = std::max(latest, node->stat.created_zxid);
      created_.push_back(node->stat.created_zxid);
    } else {
      Fault(provider->address + ": its report cannot be read: " + report.status().message());
    }
  }
  return {};
}

Result<std::optional<ProviderReport>> Auditor::ReportOf(const std::string& node_name) {
  FIRN_ASSIGN(const auto node, Find(std::string(kProvidersPath) + "/" + node_name));
  if (!node.has_value()) return std::optional<ProviderReport>();
  FIRN_ASSIGN(ProviderReport report, ParseReport(node->data));
  return std::optional(std::move(report));
}

Status Auditor::ReadConfigurators() {
  const std::string folder(kConfiguratorsPath);
  const auto names = registry_.List(folder);
  if (names.code() == Code::kNotFound) return {};
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    FIRN_ASSIGN(const auto node, Find(folder + "/" + name));
    if (!node.has_value()) continue;
    const auto address = UrlDecode(name);
    const Status word = address.ok() ? ParseConfigurator(node->data).status() : address.status();
    if (word.ok()) continue;
    Fault("the operator's setting for " + Quoted(address.value_or(name)) +
          " is ignored: " + word.message());
  }
  return {};
}

// After creation or a restore, all racks have the same workers, from 0 on.
void Auditor::CompareRacks() {
  std::map<uint32_t, std::set<uint32_t>> racks;
  uint32_t workers = 0;
  for (const AuditedSlot& slot : audit_.slots) {
    racks[slot.slot.rack].insert(slot.slot.worker);
    workers = std::max(workers, slot.slot.worker + 1);
  }
  if (!split_.has_value()) return;
  if (workers == 0) return Missing(AskForRestore("there are no slots"));
  for (uint32_t rack = 0; rack < split_->racks(); ++rack) {
    const std::set<uint32_t>& there = racks[rack];
    if (there.size() == workers) continue;
    uint32_t first = 0;
    while (there.count(first) != 0) ++first;
    Missing(AskForRestore(Cat("rack ", rack, ": ", workers - there.size(), " of ", workers,
                              " records are missing, the first is worker ", first, "'s")));
  }
}

void Auditor::CompareNonces() {
  std::map<Nonce, Slot> seen;
  for (const AuditedSlot& slot : audit_.slots) {
    if (slot.record.nonce.zero() || slot.record.retired) continue;
    const auto [first, added] = seen.emplace(slot.record.nonce, slot.slot);
    if (!added) Fault(SlotText(slot.slot) + " has the same nonce as " + SlotText(first->second));
  }
}

AuditedSlot* Auditor::SlotOf(MachineId machine) {
  for (AuditedSlot& slot : audit_.slots) {
    if (slot.machine == machine) return &slot;
  }
  return nullptr;
}

Status Auditor::CompareProviders() {
  std::map<MachineId, std::string> seen;
  for (size_t i = 0; i < audit_.providers.size(); ++i) {
    const AuditedProvider& audited = audit_.providers[i];
    // A killed process's report stays until its session ends, and may contradict its successor's.
    if (created_[i] == latest_[audited.provider.address]) JudgeServer(audited, now_, audit_);
    for (const HeldMachine& held : audited.report.Held()) {
      const std::string& address = audited.provider.address;
      const auto [first, added] = seen.emplace(held.machine, address);
      // With the same address, the other node is a killed process's, until its session ends.
      if (!added && first->second != address) {
        Fault(
            Cat(address, " and ", first->second, " both report machine id ", held.machine.value()));
      }
      FIRN_TRY(CompareHeld(audited, held));
    }
  }
  return {};
}

// An apparent fault is read again: the nodes may have changed between the reads. A server that has
// released its machine id meanwhile does not report it any more.
Status Auditor::CompareHeld(const AuditedProvider& audited, const HeldMachine& held) {
  const std::string& address = audited.provider.address;
  AuditedSlot* const slot = SlotOf(held.machine);
  if (slot == nullptr) {
    Fault(
        Cat(address, " reports machine id ", held.machine.value(), ", for which there is no slot"));
    return {};
  }
  slot->clock_skew_ms = audited.report.clock_skew_ms;
  if (held.bound <= slot->record.bound && !ClaimedByAnother(address, held.bound, *slot)) return {};
  FIRN_ASSIGN(const auto report, ReportOf(ProviderNodeName(audited.provider)));
  const auto bound = report.has_value() ? report->BoundOf(held.machine) : std::nullopt;
  if (!bound) return {};
  FIRN_ASSIGN(const auto look, LookAgain(slot->slot));
  if (look.has_value()) CompareAgain(address, *bound, look->slot);
  return {};
}

bool Auditor::ClaimedByAnother(const std::string& address, WallMs bound,
                               const AuditedSlot& slot) const {
  // A claim that begins at or above its bound does not overlap.
  if (bound <= std::max(now_, slot.record.since)) return false;
  return slot.live.has_value() && slot.live->endpoint != address;
}

void Auditor::CompareAgain(const std::string& address, WallMs bound, const AuditedSlot& slot) {
  const std::string holds =
      Cat(address, " holds machine id ", slot.machine.value(), " until ", FormatRfc3339(bound));
  // A floor above the bound: the cluster was restored, above all times that the server may use.
  if (bound > std::max(slot.record.bound, audit_.meta->floor)) {
    Loss(Cat(holds, ", but its record says ", FormatRfc3339(slot.record.bound),
             ": the registry went back in time"));
  }
  // The server's own bound is ahead: until it notices, both may issue the same ids.
  if (ClaimedByAnother(address, bound, slot)) {
    Fault(Cat(holds, ", and ", slot.live->endpoint, " (", slot.record.owner,
              ") has claimed it from ", FormatRfc3339(slot.record.since),
              " on: ids of the time in between may be duplicated"));
  }
}

}  // namespace

bool Audit::NeverUsed() const {
  return std::all_of(slots.begin(), slots.end(),
                     [](const AuditedSlot& slot) { return slot.use == SlotUse::kNeverUsed; });
}

Result<Audit> ReadAudit(BlockingCoordinator& registry, WallMs now) {
  FIRN_TRY(registry.Sync(kMetaPath));
  return Auditor(registry, now).Run();
}

}  // namespace firn
