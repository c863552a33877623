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

// Nodes to be made, sent in portions; those already there are left alone.
class Creation {
 public:
  explicit Creation(BlockingCoordinator& registry) : registry_(registry) {}

  Status Add(std::string path, std::string data) {
    writes_.push_back(Write::Create(std::move(path), std::move(data), Lifetime::kPersistent));
    return writes_.size() < kCreatesMax ? Status() : Send();
  }

  // All at once where none is there; else those that are missing, one by one. Each write of a
  // portion is tried once more at most, so the loop is bounded.
  Status Send() {
    const std::vector<Write> writes = std::exchange(writes_, {});
    if (writes.empty()) return {};
    const WriteOutcome all = registry_.Multi(writes);
    if (all.status.ok()) return {};
    if (all.status.code() != Code::kConflict) return all.status;
    for (const Write& write : writes) {
      const WriteOutcome one = registry_.Multi({write});
      if (!one.status.ok() && one.status.code() != Code::kConflict) return one.status;
    }
    return {};
  }

 private:
  BlockingCoordinator& registry_;
  std::vector<Write> writes_;
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

Status MakeMissingNodes(BlockingCoordinator& registry, const Layout& layout, int rack_bits,
                        std::optional<uint32_t> workers) {
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, rack_bits));
  const uint32_t per_rack = std::min(workers.value_or(split.workers()), split.workers());
  Creation creation(registry);
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
  FIRN_TRY(MakeMissingNodes(registry, plan.layout, plan.rack_bits, plan.workers));
  stands.meta.frozen = false;
  stands.meta.reason.clear();
  stands.meta.floor = std::max(stands.meta.floor, plan.floor);
  return SetMeta(registry, stands.meta, stands.version);
}

}  // namespace firn
