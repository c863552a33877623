#include "server/store/ledger_freeze.h"

#include <utility>

#include <glog/logging.h>

#include "registry/records.h"
#include "registry/slot.h"

namespace firn {

void LedgerFreeze::Begin(std::string why) {
  if (why_) return;
  why_ = std::move(why);
  try_at_ = now_;
  asked_ = false;
}

void LedgerFreeze::Tick(BootMs now) {
  now_ = now;
  mailbox_.Open();
  if (!why_ || asked_ || now < try_at_) return;
  Ask();
}

void LedgerFreeze::Ask() {
  asked_ = true;
  try_at_ = now_ + kRetry;
  session_ = coordinator_.session();
  ReadSynced(coordinator_, mailbox_, {kMetaPath}, [this](Result<Nodes> nodes) { OnRoot(nodes); });
}

void LedgerFreeze::OnRoot(const Result<Nodes>& nodes) {
  asked_ = false;
  if (!nodes.ok()) return;
  const std::optional<Node>& root = nodes->front();
  if (!root) {
    why_.reset();  // nobody can claim or take anything without it
    return;
  }
  Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) {
    LOG(ERROR) << "the cluster cannot be frozen: its root node does not read: " << meta.status();
    return;
  }
  if (meta->frozen) {
    why_.reset();
    return;
  }
  if (coordinator_.session() != session_) return;  // the numbers may stand for another tree
  meta->frozen = true;
  meta->reason = why_->substr(0, ClusterMeta::kReasonBytesMax);
  asked_ = true;
  coordinator_.Multi(
      {Write::Set(kMetaPath, FormatMeta(*meta), root->stat.version), EraCheck(meta->era)},
      mailbox_.Expect<WriteOutcome>([this](WriteOutcome answer) { OnSet(answer); }));
}

void LedgerFreeze::OnSet(const WriteOutcome& answer) {
  asked_ = false;
  if (!answer.status.ok()) return;  // read again when it is time
  LOG(ERROR) << "the cluster is frozen: " << *why_;
  why_.reset();
}

}  // namespace firn
