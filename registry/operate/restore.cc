#include "registry/operate/restore.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/freeze.h"
#include "registry/cluster/records.h"
#include "registry/cluster/reserved.h"
#include "registry/operate/restore_policy.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

constexpr char kBeingRestored[] = "the cluster is being restored";
// Stays until everything exists, so that a later call also knows that the cluster was lost. The
// text is part of the registry's format: the command of version 0.1 compares it.
constexpr char kBeingRecreated[] = "the cluster is being made anew";

EraWrites Remember(const RestoreMemory& memory, bool exists) {
  return [memory, exists](const Nonce& era) {
    const std::string text = FormatRestoreMemory(memory, era);
    return std::vector{exists ? Write::Set(kRestorePath, text, Write::kAnyVersion)
                              : Write::Create(kRestorePath, text, Lifetime::kPersistent)};
  };
}

// Unfreezes the cluster, and forgets the restore, whose node is as `left`.
Status Unfreeze(BlockingCoordinator& registry, MetaAsRead stands, const RestoreMemoryAsRead& left) {
  stands.meta.frozen = false;
  stands.meta.reason.clear();
  std::vector<Write> also;
  if (left.exists) also.push_back(Write::Erase(kRestorePath, left.version));
  return SetMeta(registry, stands, std::move(also));
}

// Creates a root node, or replaces an unreadable one.
Result<MetaAsRead> RecreateRoot(BlockingCoordinator& registry, const RestoreFacts& facts,
                                std::optional<int64_t> version, Entropy& entropy,
                                const EraWrites& also) {
  FIRN_TRY(registry.PrepareRoot());
  MetaAsRead made{.meta = {.uuid = facts.uuid.empty() ? DrawUuid(entropy) : facts.uuid,
                           .layout = facts.layout.text(),
                           .rack_bits = facts.rack_bits,
                           .default_strategy = facts.default_strategy,
                           .ids_since = facts.ids_since,
                           .floor = {},
                           .frozen = true,
                           .reason = kBeingRecreated}};
  FIRN_ASSIGN(made.version, BeginEra(registry, made.meta, version, entropy, also));
  return made;
}

// Stores how far ids are ahead of the clocks, which the node of the present era shows until the
// next era begins. A holder whose record was lost may be that far ahead.
Status KeepLead(BlockingCoordinator& registry, const MetaAsRead& root, RestoreMemory& memory) {
  const Result<Node> era = registry.Read(EraPath(root.meta.era));
  const bool is_lost = era.code() == Code::kNotFound || era.code() == Code::kCorrupt;
  if (!era.ok() && !is_lost) return era.status();
  memory.lead = LeadOf(root.meta.floor, is_lost ? root.modified : era->stat.modified);
  return {};
}

// Freezes the root node in a new era; creates it if it is missing. `memory`: set to the stored one.
Result<MetaAsRead> Frozen(BlockingCoordinator& registry, const RestoreFacts& facts,
                          Entropy& entropy, RestoreReport& report, RestoreMemory& memory) {
  Result<MetaAsRead> stands = ReadMeta(registry);
  const bool others = stands.ok() && facts.replaces_unused && stands->meta.uuid != facts.uuid &&
                      !facts.uuid.empty();
  report.root_made = others || stands.code() == Code::kNotFound || stands.code() == Code::kCorrupt;
  if (stands.code() == Code::kCorrupt && facts.uuid.empty()) {
    return stands.status().WithContext("name the cluster by a document (--from), or by --uuid");
  }
  FIRN_ASSIGN(RestoreMemoryAsRead left,
              ReadRestoreMemory(registry, stands.ok() ? stands->meta : ClusterMeta()));
  memory = facts.memory;
  if (others) memory.replaced = stands->meta.uuid;
  if (left.memory) {
    const bool forgets = facts.forgets_documents;
    if (forgets) left.memory->documents.clear();
    if (forgets ? memory.Lacks(*left.memory) : memory.Overlooks(*left.memory)) {
      return Conflict("another restore has begun meanwhile; run the command again to continue it");
    }
    memory.Join(*left.memory);
  }
  if (memory.plan.empty()) memory.plan = DrawUuid(entropy);
  // An unfinished run may have begun its era by a wrong clock. It has stored the lead before it.
  if (stands.ok() && !others && !left.memory) FIRN_TRY(KeepLead(registry, *stands, memory));
  const EraWrites also = Remember(memory, left.exists);
  if (report.root_made) {
    const bool absent = stands.code() == Code::kNotFound;
    const auto over = absent ? std::nullopt : std::optional(Write::kAnyVersion);
    return RecreateRoot(registry, facts, others ? std::optional(stands->version) : over, entropy,
                        also);
  }
  if (!stands.ok()) return stands;
  report.root_made = IsBeingMade(stands->meta);
  if (facts.NewIdsSince(stands->meta)) stands->meta.ids_since = facts.ids_since;
  stands->meta.frozen = true;
  if (report.root_made) {
    stands->meta.reason = kBeingRecreated;
  } else if (!TagWhoseLedgerWentBack(stands->meta.reason)) {
    stands->meta.reason = kBeingRestored;
  }
  FIRN_ASSIGN(stands->version, BeginEra(registry, stands->meta, stands->version, entropy, also));
  return stands;
}

// The root node has just been set, so its time is the registry's current time.
Result<WallMs> LaterClock(BlockingCoordinator& registry, const RestoreFacts& facts) {
  FIRN_ASSIGN(const Node root, registry.Read(kMetaPath));
  const WallMs there = root.stat.modified;
  if (there == WallMs() || std::chrono::abs(facts.now - there) <= facts.clock_skew_max) {
    return std::max(facts.now, there);
  }
  return Invalid(Cat("the local clock is ", DurationText(std::chrono::abs(facts.now - there)),
                     facts.now > there ? " ahead of" : " behind", " the registry's (",
                     FormatRfc3339(facts.now), ", registry ", FormatRfc3339(there),
                     "); correct the clock and try again (the cluster stays frozen until then)"));
}

// Writes a slot's record over the version that was read. Keeps its word: its holder may continue to
// issue, and must recognise its record.
Status Put(BlockingCoordinator& registry, const Nonce& era, Slot slot, const SlotRecord& record,
           int64_t version) {
  std::vector<Write> writes;
  AddSet(writes, SlotPath(slot), FormatSlotRecord(record), version);
  writes.push_back(EraCheck(era));
  return registry.Multi(std::move(writes)).status;
}

// Includes the slot's bound in the frontier, or retires the slot; moves a record at an unguarded
// version to the next one.
Status TakeSlot(BlockingCoordinator& registry, const Nonce& era, Slot slot, Frontier& frontier,
                RestoreReport& report) {
  const Result<Node> node = registry.Read(SlotPath(slot));
  if (!node.ok() && node.code() != Code::kCorrupt) return node.status();
  const Result<SlotRecord> record = node.ok() ? ParseSlotRecord(node->data) : node.status();
  const int64_t version = node.ok() ? node->stat.version : Write::kAnyVersion;
  const bool sane = record.ok() && (record->retired || frontier.Take(record->bound));
  if (sane && version != kUnguardedVersion) return {};
  SlotRecord left = record.ok() ? *record : SlotRecord();
  if (!sane) {
    left.retired = true;
    report.retired.push_back(slot);
  }
  return Put(registry, era, slot, left, version);
}

// Retires the machine ids that the operator names, and the machine ids of ignored bounds, even if
// their records are plausible. Skips machine ids without a record, because they are unused.
Status RetireNamed(BlockingCoordinator& registry, const Nonce& era, const RackSplit& split,
                   const RestoreFacts& facts, RestoreReport& report) {
  std::vector<MachineId> machines = facts.retired;
  for (const ReportedBound& bound : report.ignored) {
    if (bound.machine) machines.push_back(*bound.machine);
  }
  for (const MachineId machine : machines) {
    const Slot slot{split.RackOf(machine), split.WorkerOf(machine)};
    const Result<Node> node = registry.Read(SlotPath(slot));
    if (node.code() == Code::kNotFound) continue;
    if (!node.ok()) return node.status();
    FIRN_ASSIGN(SlotRecord record, ParseSlotRecord(node->data));
    if (record.retired) continue;
    record.retired = true;
    report.retired.push_back(slot);
    FIRN_TRY(Put(registry, era, slot, record, node->stat.version));
  }
  return {};
}

// Reserves machine ids again, also claimed ones: the other system uses them.
Status ReserveNamed(BlockingCoordinator& registry, const Nonce& era, const RackSplit& split,
                    const ReservedIds& range, RestoreReport& report) {
  for (uint32_t id = range.first.value(); id <= range.last.value(); ++id) {
    const Slot slot{split.RackOf(MachineId(id)), split.WorkerOf(MachineId(id))};
    FIRN_ASSIGN(const Node node, registry.Read(SlotPath(slot)));
    FIRN_ASSIGN(SlotRecord record, ParseSlotRecord(node.data));
    if (IsReserved(record)) continue;
    if (!record.nonce.zero() || !record.owner.empty()) report.reserved_late.push_back(slot);
    record.retired = true;
    record.owner = std::string(kReservedPrefix) + range.used_by;
    FIRN_TRY(Put(registry, era, slot, record, node.stat.version));
  }
  return {};
}

// Marks the machine ids of plausible bounds as used where their records are lost. Their holders
// continue at most up to the floor, so the machine ids can be claimed at once.
Status RecreateUsed(BlockingCoordinator& registry, const Nonce& era, const RackSplit& split,
                    const RestoreFacts& facts, const RestoreReport& report) {
  for (const ReportedBound& reported : facts.bounds) {
    if (!reported.machine || reported.bound == WallMs() ||
        std::ranges::find(report.ignored, reported) != report.ignored.end()) {
      continue;
    }
    const Slot slot{split.RackOf(*reported.machine), split.WorkerOf(*reported.machine)};
    const Result<Node> node = registry.Read(SlotPath(slot));
    if (node.code() == Code::kNotFound) continue;
    if (!node.ok()) return node.status();
    FIRN_ASSIGN(SlotRecord record, ParseSlotRecord(node->data));
    if (!record.never_used() || record.retired) continue;
    record.owner = kRestoredOwner;
    record.bound = record.since = std::min(reported.bound, facts.now - facts.skew_max);
    FIRN_TRY(Put(registry, era, slot, record, node->stat.version));
  }
  return {};
}

// Removes the unused records of a rack from worker `first` on. Returns whether others are left.
Result<bool> EraseUnused(BlockingCoordinator& registry, const Nonce& era, uint32_t rack,
                         uint32_t first) {
  constexpr size_t kErasesMax = 16;
  FIRN_ASSIGN(const std::vector<std::string> names, registry.List(RackPath(rack)));
  bool left = false;
  std::vector<Write> writes{EraCheck(era)};
  for (const std::string& name : names) {
    const auto worker = ParseIndex<uint32_t>(name);
    if (!worker || *worker < first) {
      left = true;
      continue;
    }
    const std::string path = SlotPath({rack, *worker});
    FIRN_ASSIGN(const Node node, registry.Read(path));
    const Result<SlotRecord> record = ParseSlotRecord(node.data);
    if (!record.ok() || !record->never_used()) {
      left = true;
      continue;
    }
    writes.push_back(Write::Erase(path, node.stat.version));
    if (writes.size() <= kErasesMax) continue;
    FIRN_TRY(registry.Multi(std::exchange(writes, {EraCheck(era)})).status);
  }
  if (writes.size() > 1) FIRN_TRY(registry.Multi(std::move(writes)).status);
  return left;
}

// Removes the slots of a replaced cluster that this one does not have.
Status EraseBeyond(BlockingCoordinator& registry, const Nonce& era, const RackSplit& split,
                   uint32_t workers) {
  const auto racks = registry.List(kMachinesPath);
  if (racks.code() == Code::kNotFound) return {};
  if (!racks.ok()) return racks.status();
  for (const std::string& name : *racks) {
    const auto rack = ParseIndex<uint32_t>(name);
    if (!rack) continue;
    const bool ours = *rack < split.racks();
    FIRN_ASSIGN(const bool left, EraseUnused(registry, era, *rack, ours ? workers : 0));
    if (ours || left) continue;
    const Write rack_node = Write::Erase(RackPath(*rack), Write::kAnyVersion);
    FIRN_TRY(registry.Multi({rack_node, EraCheck(era)}).status);
  }
  return {};
}

// Returns the facts with only those bounds that servers have reported since.
Result<RestoreFacts> LaterFacts(const RestoreFacts& facts, const MetaAsRead& frozen) {
  RestoreFacts late = facts;
  late.bounds.clear();
  if (!facts.last_reports) return late;
  FIRN_ASSIGN(const std::vector<ProviderReport> reports, facts.last_reports(frozen));
  for (const ProviderReport& report : reports) AddReport(report, late);
  std::erase_if(late.bounds, [&facts](const ReportedBound& bound) {
    return std::ranges::find(facts.bounds, bound) != facts.bounds.end();
  });
  return late;
}

Status TakeSlots(BlockingCoordinator& registry, const Nonce& era, const RackSplit& split,
                 Frontier& frontier, RestoreReport& report) {
  for (uint32_t rack = 0; rack < split.racks(); ++rack) {
    const auto names = registry.List(RackPath(rack));
    if (names.code() == Code::kNotFound) continue;  // the whole rack is lost
    if (!names.ok()) return names.status();
    for (const std::string& name : *names) {
      const auto worker = ParseIndex<uint32_t>(name);
      if (!worker.has_value() || *worker >= split.workers()) continue;
      report.workers = std::max(report.workers, *worker + 1);
      FIRN_TRY(TakeSlot(registry, era, {rack, *worker}, frontier, report));
    }
  }
  return {};
}

}  // namespace

bool IsBeingMade(const ClusterMeta& meta) {
  return meta.frozen && (meta.reason == kBeingMade || meta.reason == kBeingRecreated);
}

Status FreezeForRestore(BlockingCoordinator& registry, const RestoreFacts& facts,
                        Entropy& entropy) {
  RestoreReport report;
  RestoreMemory memory;
  return Frozen(registry, facts, entropy, report, memory).status();
}

void AddReport(const ProviderReport& report, RestoreFacts& facts) {
  facts.bounds.push_back({report.bound, report.machine});
  for (const auto& [machine, bound] : report.more) facts.bounds.push_back({bound, machine});
  if (report.lease_bound != WallMs()) facts.bounds.push_back({report.lease_bound, {}});
  const Milliseconds skew = std::chrono::abs(Milliseconds(report.clock_skew_ms));
  if (skew <= kPoisonAhead) facts.skew_max = std::max(facts.skew_max, skew);
  if (report.window <= kWindowMax) facts.window = std::max(facts.window, report.window);
}

namespace {

// Everything after the freeze.
Status RestoreFrozen(BlockingCoordinator& registry, const RestoreFacts& facts,
                     const RestoreMemory& memory, MetaAsRead& stands, RestoreReport& report) {
  FIRN_ASSIGN(const Layout layout, Layout::Parse(stands.meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, stands.meta.rack_bits));
  report.uuid = stands.meta.uuid;
  FIRN_ASSIGN(const WallMs now, LaterClock(registry, facts));
  Frontier frontier(CertainTime(now, stands.meta.floor, memory.lead, facts));
  for (const ReportedBound& reported : facts.bounds) {
    if (!frontier.Take(reported.bound)) report.ignored.push_back(reported);
  }
  FIRN_ASSIGN(report.repaired, RepairNodes(registry, stands.meta.era));
  FIRN_TRY(TakeSlots(registry, stands.meta.era, split, frontier, report));
  report.floor = stands.meta.floor = frontier.highest() + 3 * facts.window;
  const auto beside = [&](ClusterSettings& settings) {
    if (!memory.replaced.empty()) settings = {};
    if (report.root_made && facts.lease_share) settings.lease_share.reset();
    settings.window = std::max(settings.window, facts.window);
  };
  FIRN_TRY(ChangeSettings(registry, stands.meta.era, beside).status());
  if (report.root_made)
    stands.meta.lease_share = facts.lease_share.value_or(stands.meta.lease_share);
  FIRN_TRY(SetMeta(registry, stands));
  // A cluster smaller than its layout keeps its size.
  if (facts.workers.has_value() || report.workers == 0) {
    report.workers = std::min(facts.workers.value_or(split.workers()), split.workers());
  }
  FIRN_ASSIGN(const uint32_t reserved, WorkersWith(facts.reserved, split));
  report.workers = std::max(report.workers, reserved);
  if (!memory.replaced.empty()) {
    FIRN_TRY(EraseBeyond(registry, stands.meta.era, split, report.workers));
  }
  FIRN_TRY(MakeMissingNodes(registry, stands, report.workers));
  FIRN_TRY(RecreateUsed(registry, stands.meta.era, split, facts, report));
  FIRN_TRY(RetireNamed(registry, stands.meta.era, split, facts, report));
  for (const ReservedIds& range : facts.reserved)
    FIRN_TRY(ReserveNamed(registry, stands.meta.era, split, range, report));
  if (facts.tags) FIRN_TRY(facts.tags(stands));
  if (report.root_made) FIRN_TRY(MakeFirstTag(registry, stands));
  FIRN_ASSIGN(const RestoreMemoryAsRead left, ReadRestoreMemory(registry, stands.meta));
  FIRN_ASSIGN(RestoreFacts late, LaterFacts(facts, stands));
  for (const ReportedBound& reported : late.bounds) {
    if (!frontier.Take(reported.bound)) report.ignored.push_back(reported);
  }
  frontier.Take(now + late.skew_max);
  report.floor = stands.meta.floor = frontier.highest() + 3 * late.window;
  if (late.window > facts.window) {
    const auto raise = [&late](ClusterSettings& settings) {
      settings.window = std::max(settings.window, late.window);
    };
    FIRN_TRY(ChangeSettings(registry, stands.meta.era, raise).status());
  }
  FIRN_TRY(RecreateUsed(registry, stands.meta.era, split, late, report));
  FIRN_TRY(RetireNamed(registry, stands.meta.era, split, late, report));
  return Unfreeze(registry, stands, left);
}

}  // namespace

Result<RestoreReport> RestoreCluster(BlockingCoordinator& registry, const RestoreFacts& facts,
                                     Entropy& entropy) {
  RestoreReport report;
  RestoreMemory memory;
  FIRN_ASSIGN(MetaAsRead stands, Frozen(registry, facts, entropy, report, memory));
  const Status restored = RestoreFrozen(registry, facts, memory, stands, report);
  if (!restored.ok()) return IfOvertaken(registry, stands, restored);
  return report;
}

}  // namespace firn
