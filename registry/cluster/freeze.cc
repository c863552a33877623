#include "registry/cluster/freeze.h"

#include <utility>
#include <vector>

#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {

Task<FreezeTried> TryToFreeze(Talk* talk, std::function<bool(const ClusterMeta&)> settled,
                              std::string why) {
  const std::vector<std::string> paths{kMetaPath};
  Result<Nodes> nodes = co_await talk->ReadSynced(paths);
  if (!nodes.ok()) co_return FreezeTried{Freezing::kUnanswered, nodes.status().message()};
  const std::optional<Node>& root = nodes->front();
  if (!root.has_value()) co_return FreezeTried{Freezing::kSettled};
  Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) co_return FreezeTried{Freezing::kUnreadable, meta.status().message()};
  if (settled(*meta)) co_return FreezeTried{Freezing::kSettled};
  meta->frozen = true;
  meta->reason = why.substr(0, ClusterMeta::kReasonBytesMax);
  std::vector<Write> writes;
  AddSet(writes, kMetaPath, FormatMeta(*meta), root->stat.version);
  writes.push_back(EraCheck(meta->era));
  Written set = co_await talk->Multi(writes);
  // Otherwise somebody else changed it, perhaps by freezing it, or nobody knows.
  const bool done = set.fate == Written::Fate::kDone;
  co_return FreezeTried{done ? Freezing::kFrozen : Freezing::kAgain};
}

}  // namespace firn
