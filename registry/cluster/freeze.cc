#include "registry/cluster/freeze.h"

#include <optional>
#include <vector>

#include "common/base/cat.h"
#include "common/base/quote.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {
namespace {

// The text is part of the registry's format: it is parsed in the reasons of other versions.
constexpr std::string_view kBeforeTag = "the ledger of tag '";
constexpr std::string_view kAfterTag = "' was lost or went back: ";

}  // namespace

std::string LedgerWentBack(std::string_view tag, std::string_view why) {
  return Cat(kBeforeTag, tag, kAfterTag, why);
}

std::optional<std::string> TagWhoseLedgerWentBack(std::string_view reason) {
  const size_t end = reason.find(kAfterTag);
  if (!reason.starts_with(kBeforeTag) || end == reason.npos) return std::nullopt;
  return std::string(reason.substr(kBeforeTag.size(), end - kBeforeTag.size()));
}

std::optional<Nonce> EraToFreeze(const ClusterMeta& meta) {
  if (meta.frozen && meta.reason != kBeingMade) return std::nullopt;
  return meta.era;
}

Task<Result<Freeze>> TryToFreeze(AsyncRegistry* registry, FreezeOrder order) {
  const std::vector<std::string> root{kMetaPath};
  Result<Nodes> nodes = co_await registry->ReadSynced(root);
  if (!nodes.ok()) co_return nodes.status();
  const std::optional<Node>& node = nodes->front();
  if (!node.has_value()) co_return Freeze::kNeedless;
  Result<ClusterMeta> meta = ParseMeta(node->data);
  if (!meta.ok()) co_return meta.status();
  if (!EraToFreeze(*meta) || order.repaired(*meta)) co_return Freeze::kNeedless;
  meta->frozen = true;
  meta->reason = Shortened(order.why, ClusterMeta::kReasonBytesMax);
  std::vector<Write> writes;
  AddSet(writes, kMetaPath, FormatMeta(*meta), node->stat.version);
  writes.push_back(EraCheck(meta->era));
  Written set = co_await registry->Multi(writes);
  co_return set.fate == Written::Fate::kDone ? Freeze::kDone : Freeze::kNotYet;
}

}  // namespace firn
