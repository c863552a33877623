#include "registry/cluster/cluster_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/id/rack_split.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// Creates in one multi, which has to finish within the coordinator's time limit: a directory syncs
// its disk four times for each, which takes about 50 ms on a busy disk.
constexpr size_t kCreatesMax = 16;
// More than interrupted manual deletions can leave. No process checks for the rest.
constexpr size_t kErasEndedMax = 64;
// More than the clocks of a cluster may differ when its first id is issued.
constexpr Milliseconds kBeforeFirstId{86'400'000};

// Nodes to be created below one version of the root node, sent in portions. Existing nodes are not
// changed.
class Creation {
 public:
  Creation(BlockingCoordinator& registry, const MetaAsRead& root)
      : registry_(registry),
        guards_{Write::Check(kMetaPath, root.version), EraCheck(root.meta.era)} {}

  Status Add(std::string path, std::string data) {
    creates_.push_back(Write::Create(std::move(path), std::move(data), Lifetime::kPersistent));
    return creates_.size() < kCreatesMax ? Status() : Send();
  }

  // Whether all added nodes were sent.
  bool empty() const { return creates_.empty(); }

  // Creates all nodes at once if none exists, otherwise the missing ones one by one. Each write of
  // a portion is retried at most once, so the loop is bounded.
  Status Send() {
    const std::vector<Write> creates = std::exchange(creates_, {});
    const WriteOutcome all = registry_.Multi(Guarded(creates));
    if (all.status.ok()) return {};
    if (!IsThere(all)) return all.status;
    for (const Write& create : creates) {
      const WriteOutcome one = registry_.Multi(Guarded({create}));
      if (!one.status.ok() && !IsThere(one)) return one.status;
    }
    return {};
  }

 private:
  std::vector<Write> Guarded(const std::vector<Write>& creates) const {
    std::vector<Write> writes = guards_;
    writes.insert(writes.end(), creates.begin(), creates.end());
    return writes;
  }

  // Whether a node, and not a guard, was the reason for the refusal.
  bool IsThere(const WriteOutcome& outcome) const {
    return outcome.status.code() == Code::kConflict &&
           outcome.failed >= static_cast<int>(guards_.size());
  }

  BlockingCoordinator& registry_;
  const std::vector<Write> guards_;
  std::vector<Write> creates_;
};

// Adds the progress to the error if the registry did not answer in time.
Status Interrupted(const Status& status, uint32_t made, uint32_t of) {
  if (status.code() != Code::kUnavailable && status.code() != Code::kUnknown) return status;
  return status.WithContext(
      Cat(made, " of ", of, " machine ids are created; repeat the command to create the others"));
}

// The writes that end all existing eras.
Result<std::vector<Write>> EndOfEras(BlockingCoordinator& registry) {
  std::vector<Write> ends;
  const auto names = registry.List(kMetaPath);
  if (names.code() == Code::kNotFound) return ends;
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name.rfind(kEraPrefix, 0) != 0 || ends.size() == kErasEndedMax) continue;
    ends.push_back(Write::Erase("/" + name, Write::kAnyVersion));
  }
  return ends;
}

// Names another command as the cause if the root node or the era has changed since it was read.
Status OfTheRoot(const Status& written) {
  const char* const kOvertaken =
      "another command has changed the cluster meanwhile; its audit shows what is left to do";
  if (written.code() == Code::kConflict) return Conflict(kOvertaken);
  return written.code() == Code::kNotFound ? NotFound(kOvertaken) : written;
}

}  // namespace

Result<MetaAsRead> ReadMeta(BlockingCoordinator& registry) {
  FIRN_TRY(registry.Sync(kMetaPath));
  FIRN_ASSIGN(const Node node, registry.Read(kMetaPath));
  FIRN_ASSIGN(ClusterMeta meta, ParseMeta(node.data));
  return MetaAsRead{std::move(meta), node.stat.version, node.stat.modified};
}

Result<int64_t> BeginEra(BlockingCoordinator& registry, ClusterMeta& meta,
                         std::optional<int64_t> version, Entropy& entropy, const EraWrites& also) {
  FIRN_ASSIGN(const std::vector<Write> ends, EndOfEras(registry));
  meta.era = Nonce::Draw(entropy);
  std::vector<Write> writes;
  size_t set = 0;
  if (version.has_value()) {
    set = AddSet(writes, kMetaPath, FormatMeta(meta), *version);
  } else {
    writes.push_back(Write::Create(kMetaPath, FormatMeta(meta), Lifetime::kPersistent));
  }
  writes.insert(writes.end(), ends.begin(), ends.end());
  writes.push_back(Write::Create(EraPath(meta.era), "", Lifetime::kPersistent));
  const std::vector<Write> more = also ? also(meta.era) : std::vector<Write>();
  writes.insert(writes.end(), more.begin(), more.end());
  const WriteOutcome begun = registry.Multi(std::move(writes));
  if (!begun.status.ok()) return version.has_value() ? OfTheRoot(begun.status) : begun.status;
  return version.has_value() ? begun.stats.at(set).version : 0;
}

Status SetMeta(BlockingCoordinator& registry, MetaAsRead& stands, std::vector<Write> also) {
  std::vector<Write> writes = std::move(also);
  const size_t set = AddSet(writes, kMetaPath, FormatMeta(stands.meta), stands.version);
  writes.push_back(EraCheck(stands.meta.era));
  const WriteOutcome done = registry.Multi(std::move(writes));
  if (done.status.ok()) stands.version = done.stats.at(set).version;
  return OfTheRoot(done.status);
}

Status IfOvertaken(BlockingCoordinator& registry, const MetaAsRead& stands, const Status& failed) {
  const Result<MetaAsRead> now = ReadMeta(registry);
  const bool changed = now.ok() ? now->meta.era != stands.meta.era || now->version != stands.version
                                : now.code() == Code::kNotFound;
  return changed ? OfTheRoot(failed) : failed;
}

std::string WhyFrozen(const ClusterMeta& meta) {
  if (meta.reason == kBeingMade) {
    return "the cluster is only partly created; repeat " + PrintCommand(PrintedCommand::kInit) +
           " to complete it";
  }
  return AskForRestore("the cluster is frozen: " + meta.reason) + " first";
}

Status MakeMissingNodes(BlockingCoordinator& registry, const MetaAsRead& frozen,
                        std::optional<uint32_t> workers, const SlotsMade& progress) {
  if (!frozen.meta.frozen) return Invalid("records are made only under a frozen root node");
  FIRN_ASSIGN(const Layout layout, Layout::Parse(frozen.meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, frozen.meta.rack_bits));
  const uint32_t per_rack = std::min(workers.value_or(split.workers()), split.workers());
  Creation creation(registry, frozen);
  FIRN_TRY(creation.Add(kClockPath, ""));
  FIRN_TRY(creation.Add(kMachinesPath, ""));
  for (uint32_t rack = 0; rack < split.racks(); ++rack) {
    FIRN_TRY(creation.Add(RackPath(rack), ""));
  }
  FIRN_TRY(creation.Send());
  const std::string unused = FormatSlotRecord({});
  const uint32_t all = split.racks() * per_rack;
  uint32_t made = 0;
  for (uint32_t slot = 0; slot < all; ++slot) {
    const Slot place{slot / per_rack, slot % per_rack};
    const Status added = creation.Add(SlotPath(place), unused);
    if (!added.ok()) return Interrupted(added, made, all);
    if (!creation.empty()) continue;
    made = slot + 1;
    if (progress) progress(made, all);
  }
  return Interrupted(creation.Send(), made, all);
}

Status MakeFirstTag(BlockingCoordinator& registry, const MetaAsRead& root) {
  const TagDefinition tag{.name = std::string(kFirstTag), .strategy = "snowflake"};
  FIRN_ASSIGN(const std::string data, WriteTagNode({.tag = tag}));
  Creation creation(registry, root);
  FIRN_TRY(creation.Add(std::string(kTagsPath), ""));
  FIRN_TRY(creation.Send());
  FIRN_TRY(creation.Add(TagPath(kFirstTag), data));
  return creation.Send();
}

Status MakeCluster(BlockingCoordinator& registry, const ClusterPlan& plan, Entropy& entropy) {
  if (!IsDefaultStrategy(plan.default_strategy)) {
    return Invalid("the default strategy must be snowflake or empty");
  }
  if (!plan.uuid.empty() && !IsUuid(plan.uuid)) return Invalid("not a UUID: " + plan.uuid);
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(plan.layout, plan.rack_bits));
  FIRN_TRY(registry.PrepareRoot());
  ClusterMeta meta{.uuid = plan.uuid.empty() ? DrawUuid(entropy) : plan.uuid,
                   .layout = plan.layout.text(),
                   .rack_bits = split.rack_bits(),
                   .default_strategy = plan.default_strategy,
                   .ids_since = plan.ids_since,
                   .floor = plan.floor,
                   .lease_share = plan.lease_share,
                   .frozen = true,
                   .reason = kBeingMade};
  const Result<int64_t> made = BeginEra(registry, meta, std::nullopt, entropy);
  if (!made.ok() && made.code() != Code::kConflict) return made.status();
  FIRN_ASSIGN(MetaAsRead stands, ReadMeta(registry));
  if (stands.meta.reason != kBeingMade) {
    return Conflict("the registry already has a cluster here: " + stands.meta.uuid);
  }
  FIRN_TRY(MakeMissingNodes(registry, stands, plan.workers, plan.progress));
  if (plan.last_look) FIRN_TRY(plan.last_look());
  FIRN_TRY(MakeFirstTag(registry, stands));
  stands.meta.frozen = false;
  stands.meta.reason.clear();
  stands.meta.floor = std::max(stands.meta.floor, plan.floor);
  const bool said = stands.meta.ids_since != WallMs() || stands.modified == WallMs();
  if (!stands.meta.default_strategy.empty() && !said) {
    stands.meta.ids_since = stands.modified - kBeforeFirstId;
  }
  return SetMeta(registry, stands);
}

}  // namespace firn
