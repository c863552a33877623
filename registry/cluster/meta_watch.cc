#include "registry/cluster/meta_watch.h"

#include <utility>

#include "registry/cluster/slot.h"

namespace firn {
MetaWatch::MetaWatch(Coordinator& coordinator, Entropy& entropy, Told told)
    : coordinator_(coordinator), entropy_(entropy), told_(std::move(told)) {}

void MetaWatch::Tick(BootMs now) {
  now_ = now;
  const bool new_session = coordinator_.session() != session_;
  session_ = coordinator_.session();
  if (session_ == 0 || reading_) return;
  stale_ |= new_session || now >= reread_at_;
  if (!stale_ || (!new_session && now < not_before_)) return;
  stale_ = false;
  reading_ = true;
  const auto spread = static_cast<uint64_t>(kRereadMin.count());
  reread_at_ = now + kRereadMin + Milliseconds(static_cast<int64_t>(entropy_.Below(spread)));
  coordinator_.Read(kMetaPath, guard_.Bind([this](const Result<Node>& node) { OnRead(node); }),
                    guard_.Bind([this] { stale_ = true; }));
}

void MetaWatch::OnRead(const Result<Node>& node) {
  reading_ = false;
  if (node.code() == Code::kUnavailable) {
    stale_ = true;
    not_before_ = now_ + kRetry;
    return;
  }
  Seen seen{.status = node.status()};
  if (node.ok()) {
    seen.version = node->stat.version;
    seen.created_zxid = node->stat.created_zxid;
  }
  if (last_told_ == seen) return;
  last_told_ = std::move(seen);
  told_(node.ok() ? ParseMeta(node->data) : node.status());
}

}  // namespace firn
