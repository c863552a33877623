#include "registry/operate/audit.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/base/url_encoding.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit_server.h"
#include "registry/operate/auditor.h"
#include "registry/seam/requests.h"

namespace firn {
namespace {

std::string AskServers() {
  return "run the " + PrintCommand(PrintedCommand::kRestore) +
         " command that a running server prints in its log and as `trouble` in its /v1/status";
}

constexpr char kDeleteNode[] =
    "delete that node with ZooKeeper's own program; the runbook shows how";
constexpr char kOtherVersion[] = "use the version of Firn that created the cluster, or a newer one";

}  // namespace

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
    Fault(Urgency::kRefused, WhyFrozen(meta), "repeat the command that makes the cluster");
  } else if (meta.frozen) {
    Loss("the cluster is frozen: " + meta.reason);
  }
  if (root->version == kUnguardedVersion) Loss(UnguardedVersionFault("the cluster's root node"));
  const Result<Layout> layout = Layout::Parse(meta.layout);
  if (!layout.ok()) {
    Fault(Urgency::kRefused, "the layout cannot be read: " + layout.status().message(),
          kOtherVersion);
  } else if (const auto split = RackSplit::Make(*layout, meta.rack_bits); split.ok()) {
    split_ = *split;
  } else {
    Fault(Urgency::kRefused, split.status().message(), kOtherVersion);
  }
  FIRN_TRY(ReadEras(meta.era));
  audit_.meta = meta;
  audit_.meta_version = root->version;
  audit_.meta_set_at = root->modified;
  FIRN_ASSIGN(audit_.settings, ReadClusterSettings(registry_));
  if (meta.frozen) {
    FIRN_ASSIGN(RestoreMemoryAsRead left, ReadRestoreMemory(registry_, meta));
    audit_.unfinished = std::move(left.memory);
  }
  // Each restore moves the ids further ahead of the clocks. An unfinished one may have set a floor.
  // More than a month is reported in any case.
  const Milliseconds lead = std::min<Milliseconds>(
      std::max(audit_.Lead(), LeadOf(meta.floor, audit_.era_began)), std::chrono::days(30));
  if (meta.floor - now_ - lead > kPoisonAhead) {
    Fault(
        Urgency::kRefused, "the floor is more than a day ahead",
        "correct the clocks of this host and of the registry; if they are right, see the runbook");
  }
  const size_t before = audit_.Losses();
  FIRN_ASSIGN(const auto clock, Find(kClockPath));
  if (!clock && audit_.Losses() == before)
    Missing("the clock node is missing; no server can claim");
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
  FIRN_ASSIGN(const auto era, Find(EraPath(current)));
  if (era) audit_.era_began = era->stat.modified;  // the node is never set
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
      Fault(Urgency::kSoon,
            "there is a foreign node among the racks: " + Quoted(ChildPath(kMachinesPath, name)),
            kDeleteNode);
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
      Fault(Urgency::kSoon,
            Cat("there is a foreign node among the slots of rack ", rack, ": ",
                Quoted(ChildPath(RackPath(rack), name))),
            kDeleteNode);
      continue;
    }
    slots.push_back({rack, *worker});
    paths.push_back(SlotPath(slots.back()));
    paths.push_back(LivePath(slots.back()));
  }
  const std::vector<Result<Node>> nodes = registry_.ReadAll(paths);
  for (size_t i = 0; i < slots.size(); ++i) {
    FIRN_ASSIGN(auto look, LookAt(slots[i], nodes[2 * i], nodes[2 * i + 1]));
    if (look.has_value() && !look->findings.empty()) {
      FIRN_ASSIGN(look, LookAgain(slots[i]));
    }
    if (look.has_value()) Keep(std::move(*look));
  }
  return {};
}

void Auditor::Keep(SlotAudit look) {
  for (AuditFinding& finding : look.findings) {
    finding.what = SlotText(look.slot.slot) + ": " + finding.what;
    audit_.findings.push_back(std::move(finding));
  }
  audit_.slots.push_back(std::move(look.slot));
}

Result<std::optional<SlotAudit>> Auditor::LookAgain(Slot slot) {
  const std::vector<Result<Node>> nodes = registry_.ReadAll({SlotPath(slot), LivePath(slot)});
  return LookAt(slot, nodes[0], nodes[1]);
}

Result<std::optional<SlotAudit>> Auditor::LookAt(Slot slot, const Result<Node>& record_node,
                                                 const Result<Node>& live_node) {
  if (record_node.code() == Code::kNotFound) return std::optional<SlotAudit>();
  AuditedSlot audited;
  audited.slot = slot;
  audited.machine = *split_->Join(slot.worker, slot.rack);
  for (const Result<Node>* node : {&record_node, &live_node}) {
    if (node->code() == Code::kCorrupt) {
      AuditFinding damaged{Urgency::kData, node->status().message(), {}, /*restore=*/true};
      return std::optional(SlotAudit{std::move(audited), {std::move(damaged)}});
    }
  }
  FIRN_TRY(record_node.status());
  std::optional<Node> live;
  if (live_node.code() != Code::kNotFound) {
    FIRN_TRY(live_node.status());
    live = *live_node;
  }
  return std::optional(InspectSlot(audited, *record_node, live, audit_, now_));
}

Status Auditor::ReadProviders() {
  const auto names = registry_.List(std::string(kProvidersPath));
  if (names.code() == Code::kNotFound) return {};
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const Result<Provider> provider = ParseProviderNodeName(name);
    if (!provider.ok()) {
      Fault(Urgency::kSoon,
            Cat("a provider's name cannot be read: ", Quoted(name), ": ",
                provider.status().message()),
            kDeleteNode);
      continue;
    }
    FIRN_ASSIGN(const auto node, Find(std::string(kProvidersPath) + "/" + name));
    if (!node.has_value()) continue;
    if (node->stat.ephemeral_owner == 0) {
      Fault(Urgency::kSoon,
            provider->address + ": its node is not ephemeral and will never disappear",
            kDeleteNode);
    }
    Result<ProviderReport> report = ParseReport(node->data);
    if (report.ok()) {
      audit_.providers.push_back({*provider, *std::move(report)});
      int64_t& latest = latest_[provider->address];
      latest = std::max(latest, node->stat.created_zxid);
      created_.push_back(node->stat.created_zxid);
    } else {
      Fault(Urgency::kSoon,
            provider->address + ": its report cannot be read: " + report.status().message(),
            "run the command again; if the fault stays, restart that server");
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
    const auto setting = address.ok() ? ParseConfigurator(node->data) : address.status();
    if (setting.ok()) {
      NoteOffline(*address, *setting);
      continue;
    }
    Fault(Urgency::kSoon,
          "the operator's setting for " + Quoted(address.value_or(name)) +
              " is ignored: " + setting.status().message(),
          kDeleteNode);
  }
  return {};
}

void Auditor::NoteOffline(const std::string& address, const Configurator& setting) {
  const bool announced = std::ranges::any_of(
      audit_.providers, [&](const auto& server) { return server.provider.address == address; });
  if (!setting.disabled || !announced) return;
  audit_.findings.push_back({Urgency::kNote,
                             address + " is offline: an operator told clients to use other servers",
                             PrintCommand(PrintedCommand::kServers, {"online", address})});
}

std::vector<std::string> Audit::Faults() const {
  std::vector<std::string> faults;
  for (const AuditFinding& finding : findings) {
    if (finding.urgency != Urgency::kNote) faults.push_back(finding.what);
  }
  return faults;
}

std::vector<std::string> Audit::Notes() const {
  std::vector<std::string> notes;
  for (const AuditFinding& finding : findings) {
    if (finding.urgency == Urgency::kNote) notes.push_back(finding.what);
  }
  return notes;
}

size_t Audit::Losses() const {
  return static_cast<size_t>(std::ranges::count_if(findings, [](const AuditFinding& finding) {
    return finding.restore && finding.urgency == Urgency::kData;
  }));
}

WallMs Audit::RecordsBegan() const { return meta && meta->floor > WallMs() ? era_began : WallMs(); }

bool Audit::NeverUsed() const {
  return std::all_of(slots.begin(), slots.end(),
                     [](const AuditedSlot& slot) { return slot.use == SlotUse::kNeverUsed; });
}

uint32_t Audit::workers() const {
  uint32_t workers = 0;
  for (const AuditedSlot& slot : slots) workers = std::max(workers, slot.slot.worker + 1);
  return workers;
}

WallMs Audit::ClusterTimeAt(WallMs registry) const {
  return meta ? ClusterTime(registry, meta->floor, meta_set_at) : registry;
}

Milliseconds Audit::Lead() const {
  if (unfinished) return unfinished->lead;
  if (!meta) return Milliseconds(0);
  return LeadOf(meta->floor, era_began != WallMs() ? era_began : meta_set_at);
}

WallMs Audit::HighestTimeAt(WallMs registry) const {
  return std::max(ClusterTimeAt(registry), registry + Lead());
}

Result<Audit> ReadAudit(BlockingCoordinator& registry, WallMs now, const StatusSource& ask) {
  FIRN_TRY(registry.Sync(kMetaPath));
  return Auditor(registry, now, ask).Run(/*with_owners=*/true);
}

Result<Audit> ReadAuditWithoutOwners(BlockingCoordinator& registry, WallMs now) {
  FIRN_TRY(registry.Sync(kMetaPath));
  return Auditor(registry, now, {}).Run(/*with_owners=*/false);
}

Status ReadPast(BlockingCoordinator& registry, Audit& audit) {
  std::vector<AuditedSlot*> slots;
  std::vector<std::string> paths;
  for (AuditedSlot& slot : audit.slots) {
    if (slot.use == SlotUse::kNeverUsed) continue;
    slots.push_back(&slot);
    paths.push_back(PastPath(slot.slot));
  }
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  for (size_t i = 0; i < slots.size(); ++i) {
    const Code code = nodes[i].code();
    if (code == Code::kNotFound || code == Code::kCorrupt) continue;
    FIRN_TRY(nodes[i].status());
    if (auto past = PastHolders::Parse(nodes[i]->data); past.ok()) slots[i]->past = past->holders();
  }
  return {};
}

Status WantPaces(BlockingCoordinator& registry) {
  const Write sign = Write::Create(std::string(kPacesWantedPath), "", Lifetime::kEphemeral);
  WriteOutcome made = registry.Multi({sign});
  if (made.status.code() == Code::kNotFound) {
    const Write folder = Write::Create(std::string(kPacesPath), "", Lifetime::kPersistent);
    made = registry.Multi({folder, sign});
  }
  return made.status.code() == Code::kConflict ? Status() : made.status;
}

// Ages are by the registry's clock: every running server publishes, so the newest rates are
// current.
Status ReadPaces(BlockingCoordinator& registry, Audit& audit) {
  const Result<Node> sign = registry.Read(std::string(kPacesWantedPath));
  if (sign.code() == Code::kNotFound || sign.code() == Code::kCorrupt) return {};
  FIRN_TRY(sign.status());
  audit.paces_wanted_at = sign->stat.modified;
  std::vector<std::string> paths;
  for (const AuditedProvider& server : audit.providers) {
    paths.push_back(PacePath(server.provider.address));
  }
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  WallMs newest;
  for (const Result<Node>& node : nodes) {
    if (node.ok()) newest = std::max(newest, node->stat.modified);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Code code = nodes[i].code();
    if (code == Code::kNotFound || code == Code::kCorrupt) continue;
    FIRN_TRY(nodes[i].status());
    const Result<ServerPace> pace = ParsePace(nodes[i]->data);
    if (!pace.ok() || nodes[i]->stat.modified < sign->stat.modified) continue;
    const Milliseconds age = newest - nodes[i]->stat.modified;
    audit.paces.insert_or_assign(audit.providers[i].provider.address, AuditedPace{*pace, age});
  }
  return {};
}

std::vector<AuditFinding> ByUrgency(std::vector<AuditFinding> findings,
                                    const std::string& restore_command) {
  std::ranges::stable_sort(findings, {}, &AuditFinding::urgency);
  for (AuditFinding& finding : findings) {
    if (finding.restore && finding.fix.empty()) {
      finding.fix = restore_command.empty() ? AskServers() : restore_command;
    }
  }
  return findings;
}

}  // namespace firn
