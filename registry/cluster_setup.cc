#include "registry/cluster_setup.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/rack_split.h"
#include "registry/slot.h"

namespace firn {
namespace {

constexpr char kBeingMade[] = "the cluster is being made";
// Of one multi: ZooKeeper takes a megabyte of requests at once.
constexpr size_t kCreatesMax = 256;

// Nodes to be made below one version of the root node, sent in portions; those already there are
// left alone.
class Creation {
 public:
  Creation(BlockingCoordinator& registry, int64_t meta_version)
      : registry_(registry), guard_(Write::Check(kMetaPath, meta_version)), writes_{guard_} {}

  Status Add(std::string path, std::string data) {
    writes_.push_back(Write::Create(std::move(path), std::move(data), Lifetime::kPersistent));
    return writes_.size() <= kCreatesMax ? Status() : Send();
  }

  // All at once where none is there; else those that are missing, one by one. Each write of a
  // portion is tried once more at most, so the loop is bounded.
  Status Send() {
    const std::vector<Write> writes = std::exchange(writes_, {guard_});
    const WriteOutcome all = registry_.Multi(writes);
    if (all.status.ok()) return {};
    if (!IsThere(all)) return all.status;
    for (size_t i = 1; i < writes.size(); ++i) {
      const WriteOutcome one = registry_.Multi({guard_, writes[i]});
      if (!one.status.ok() && !IsThere(one)) return one.status;
    }
    return {};
  }

 private:
  // Refused because of a node, not because of the guard.
  static bool IsThere(const WriteOutcome& outcome) {
    return outcome.status.code() == Code::kConflict && outcome.failed > 0;
  }

  BlockingCoordinator& registry_;
  const Write guard_;
  std::vector<Write> writes_;  // the guard, then creations
};

Status SetMeta(BlockingCoordinator& registry, const ClusterMeta& meta, int64_t version) {
  return registry.Multi({Write::Set(kMetaPath, FormatMeta(meta), version)}).status;
}

}  // namespace

Result<MetaAsRead> ReadMeta(BlockingCoordinator& registry) {
  FIRN_TRY(registry.Sync(kMetaPath));
  FIRN_ASSIGN(const Node node, registry.Read(kMetaPath));
  FIRN_ASSIGN(ClusterMeta meta, ParseMeta(node.data));
  return MetaAsRead{std::move(meta), node.stat.version};
}

Status MakeMissingNodes(BlockingCoordinator& registry, const MetaAsRead& frozen,
                        std::optional<uint32_t> workers) {
  if (!frozen.meta.frozen) return Invalid("records are made under a frozen root node only");
  FIRN_ASSIGN(const Layout layout, Layout::Parse(frozen.meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, frozen.meta.rack_bits));
  const uint32_t per_rack = std::min(workers.value_or(split.workers()), split.workers());
  Creation creation(registry, frozen.version);
  FIRN_TRY(creation.Add(kClockPath, ""));
  FIRN_TRY(creation.Add(kMachinesPath, ""));
  for (uint32_t rack = 0; rack < split.racks(); ++rack) {
    FIRN_TRY(creation.Add(RackPath(rack), ""));
  }
  FIRN_TRY(creation.Send());
  const std::string unused = FormatSlotRecord({});
  for (uint32_t rack = 0; rack < split.racks(); ++rack) {
    for (uint32_t worker = 0; worker < per_rack; ++worker) {
      FIRN_TRY(creation.Add(SlotPath({rack, worker}), unused));
    }
  }
  return creation.Send();
}

Status MakeCluster(BlockingCoordinator& registry, const ClusterPlan& plan, Entropy& entropy) {
  if (!plan.uuid.empty() && !IsUuid(plan.uuid)) return Invalid("\"" + plan.uuid + "\" is no uuid");
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(plan.layout, plan.rack_bits));
  FIRN_TRY(registry.PrepareRoot());
  ClusterMeta meta{.uuid = plan.uuid.empty() ? DrawUuid(entropy) : plan.uuid,
                   .layout = plan.layout.text(),
                   .rack_bits = split.rack_bits(),
                   .floor = plan.floor,
                   .frozen = true,
                   .reason = kBeingMade};
  const WriteOutcome made =
      registry.Multi({Write::Create(kMetaPath, FormatMeta(meta), Lifetime::kPersistent)});
  if (!made.status.ok() && made.status.code() != Code::kConflict) return made.status;
  FIRN_ASSIGN(MetaAsRead stands, ReadMeta(registry));
  if (stands.meta.reason != kBeingMade) {
    return Conflict("there is a cluster here already: " + stands.meta.uuid);
  }
  FIRN_TRY(MakeMissingNodes(registry, stands, plan.workers));
  stands.meta.frozen = false;
  stands.meta.reason.clear();
  stands.meta.floor = std::max(stands.meta.floor, plan.floor);
  return SetMeta(registry, stands.meta, stands.version);
}

}  // namespace firn
