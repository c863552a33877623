#include "server/store/ledger_freeze.h"

#include <utility>

#include <glog/logging.h>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/node_version.h"

namespace firn {

void LedgerFreeze::Begin(const Nonce& era, std::string why) {
  if (order_ && order_->era == era) return;
  order_ = Order{era, std::move(why)};
  try_at_ = now_;
}

void LedgerFreeze::Tick(BootMs now) {
  now_ = now;
  mailbox_.Open();
  if (!order_ || asked_ || now < try_at_) return;
  Ask();
}

void LedgerFreeze::Ask() {
  asked_ = true;
  try_at_ = now_ + kRetry;
  session_ = coordinator_.session();
  ReadSynced(coordinator_, mailbox_, {kMetaPath},
             [this, era = order_->era](const Result<Nodes>& nodes) { OnRoot(era, nodes); });
}

// `era`: of the order for which it was read, which another may have replaced.
void LedgerFreeze::OnRoot(const Nonce& era, const Result<Nodes>& nodes) {
  asked_ = false;
  if (!nodes.ok() || order_->era != era) return;
  const std::optional<Node>& root = nodes->front();
  if (!root) {
    order_.reset();  // nobody can claim or take anything without it
    return;
  }
  Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) {
    LOG(ERROR) << "the cluster cannot be frozen: its root node does not read: " << meta.status();
    return;
  }
  if (meta->frozen || meta->era != era) {
    order_.reset();
    return;
  }
  if (coordinator_.session() != session_) return;  // the numbers may stand for another tree
  meta->frozen = true;
  meta->reason = order_->why.substr(0, ClusterMeta::kReasonBytesMax);
  asked_ = true;
  std::vector<Write> writes;
  AddSet(writes, kMetaPath, FormatMeta(*meta), root->stat.version);
  writes.push_back(EraCheck(era));
  coordinator_.Multi(std::move(writes),
                     mailbox_.Expect<WriteOutcome>(
                         [this, era](const WriteOutcome& answer) { OnSet(era, answer); }));
}

void LedgerFreeze::OnSet(const Nonce& era, const WriteOutcome& answer) {
  asked_ = false;
  if (!answer.status.ok() || order_->era != era) return;  // read again when it is time
  LOG(ERROR) << "the cluster is frozen: " << order_->why;
  order_.reset();
}

}  // namespace firn
