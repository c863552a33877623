#include "registry/claim/freeze.h"

#include <utility>

#include "registry/cluster/cluster_setup.h"
#include "registry/seam/node_version.h"

namespace firn {

Freeze::Freeze(Coordinator& coordinator, const Tenure::Terms& held, std::string why)
    : coordinator_(coordinator), held_(held), why_(std::move(why)) {
  Ask();
}

void Freeze::Ask() {
  session_ = coordinator_.session();
  if (++tries_ > kTriesMax) return End(Outcome::kFailed, "the freeze was not acknowledged");
  ReadSynced(coordinator_, mailbox_, {kMetaPath},
             [this](const Result<Nodes>& nodes) { OnMeta(nodes); });
}

void Freeze::OnMeta(const Result<Nodes>& nodes) {
  if (!nodes.ok()) return End(Outcome::kFailed, nodes.status().message());
  const std::optional<Node>& node = nodes->front();
  if (!node.has_value()) return Look();
  Result<ClusterMeta> meta = ParseMeta(node->data);
  if (!meta.ok()) return End(Outcome::kFailed, meta.status().message());
  // Whoever makes a cluster unfreezes it without a look at anybody.
  const bool frozen = meta->frozen && meta->reason != kBeingMade;
  if (frozen || meta->floor >= held_.bound) return Look();
  if (coordinator_.session() != session_) return Ask();
  meta->frozen = true;
  meta->reason = why_.substr(0, ClusterMeta::kReasonBytesMax);
  std::vector<Write> writes;
  AddSet(writes, kMetaPath, FormatMeta(*meta), node->stat.version);
  writes.push_back(EraCheck(meta->era));
  coordinator_.Multi(std::move(writes), mailbox_.Expect<WriteOutcome>(
                                            [this](const WriteOutcome& answer) { OnSet(answer); }));
}

void Freeze::OnSet(const WriteOutcome& answer) {
  if (answer.status.ok()) return Look();
  // Somebody else changed it, perhaps by freezing it, or nobody knows: read again.
  Ask();
}

void Freeze::Look() {
  ReadSynced(coordinator_, mailbox_, {SlotPath(held_.slot)},
             [this](const Result<Nodes>& nodes) { OnSlot(nodes); });
}

void Freeze::OnSlot(const Result<Nodes>& nodes) {
  if (!nodes.ok()) return End(Outcome::kFailed, nodes.status().message());
  const std::optional<Node>& node = nodes->front();
  if (!node.has_value()) return End(Outcome::kSafe, {});
  const Result<SlotRecord> record = ParseSlotRecord(node->data);
  // Of a record that went back the word did, too; of any other a foreign word is a twin's.
  const bool known = record.ok() && record->nonce == held_.nonce &&
                     (IsOlder(node->stat.version, held_.version) || held_.Knows(record->word));
  const bool ours = known || (record.ok() && record->nonce.zero());
  if (ours) return End(Outcome::kSafe, {});
  End(Outcome::kForeign, "somebody else's claim is in the slot");
}

void Freeze::End(Outcome outcome, std::string reason) {
  outcome_ = outcome;
  reason_ = std::move(reason);
}

}  // namespace firn
