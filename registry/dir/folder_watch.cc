#include "registry/dir/folder_watch.h"

#include <algorithm>
#include <utility>

namespace firn {

FolderWatch::FolderWatch(Coordinator& coordinator, Entropy& entropy, std::string path,
                         std::function<void()> changed)
    : coordinator_(coordinator),
      entropy_(entropy),
      path_(std::move(path)),
      changed_(std::move(changed)) {}

void FolderWatch::Tick(BootMs now) {
  now_ = now;
  const bool new_session = coordinator_.session() != session_;
  session_ = coordinator_.session();
  if (session_ == 0 || in_flight_ > 0) return;
  if (new_session || now >= reread_at_) Reread();
  if (now < refresh_at_) return;
  if (std::exchange(list_stale_, false)) {
    ++in_flight_;
    coordinator_.List(path_, guard_.Bind([this](const Result<std::vector<std::string>>& names) {
      OnListed(names);
    }),
                      guard_.Bind([this] {
                        list_stale_ = true;
                        Noticed();
                      }));
    return;  // the nodes follow the list
  }
  for (const auto& [name, stale] : stale_) {
    if (stale) ReadNode(name);
  }
}

void FolderWatch::Reread() {
  list_stale_ = true;
  for (auto& [name, stale] : stale_) stale = true;
  refresh_at_ = now_;
  const auto spread = static_cast<uint64_t>(kRereadMin.count());
  reread_at_ = now_ + kRereadMin + Milliseconds(static_cast<int64_t>(entropy_.Below(spread)));
}

void FolderWatch::OnListed(const Result<std::vector<std::string>>& names) {
  --in_flight_;
  const bool absent = names.code() == Code::kNotFound;
  if (!names.ok() && !absent) {
    list_stale_ = true;
    return Failed();
  }
  listed_ = true;
  std::map<std::string, bool> there;
  const bool cut = names.ok() && names->size() > kNodesMax;
  differs_ |= std::exchange(cut_, cut) != cut;
  for (const std::string& name : absent ? std::vector<std::string>() : *names) {
    if (there.size() >= kNodesMax) break;
    const auto known = stale_.find(name);
    there.emplace(name, known == stale_.end() || known->second);
  }
  for (const auto& [name, stale] : std::exchange(stale_, std::move(there))) {
    if (!stale_.contains(name)) Forget(name);
  }
  for (const auto& [name, stale] : stale_) {
    if (stale) ReadNode(name);
  }
  NotifyWhenComplete();
}

void FolderWatch::ReadNode(const std::string& name) {
  stale_[name] = false;
  ++in_flight_;
  coordinator_.Read(path_ + "/" + name,
                    guard_.Bind([this, name](const Result<Node>& node) { OnRead(name, node); }),
                    guard_.Bind([this, name] {
                      const auto known = stale_.find(name);
                      if (known == stale_.end()) return;
                      known->second = true;
                      Noticed();
                    }));
}

void FolderWatch::OnRead(const std::string& name, const Result<Node>& node) {
  --in_flight_;
  if (node.ok()) {
    Keep(name, *node);
  } else if (node.code() == Code::kNotFound) {
    stale_.erase(name);  // gone since the list was read
    Forget(name);
  } else if (node.code() == Code::kCorrupt) {
    Keep(name, {});  // an unreadable node hides only itself
  } else {
    stale_[name] = true;
    Failed();
  }
  NotifyWhenComplete();
}

void FolderWatch::Keep(const std::string& name, const Node& node) {
  Node& kept = nodes_[name];
  differs_ |= kept.data != node.data || kept.stat != node.stat;
  kept = node;
}

void FolderWatch::Forget(const std::string& name) { differs_ |= nodes_.erase(name) > 0; }

void FolderWatch::ReadAgain(const std::string& name) {
  stale_[name] = true;
  differs_ = true;
  refresh_at_ = now_;
}

// The first notification of a burst sets the time of the read, so a long burst does not delay it.
void FolderWatch::Noticed() {
  if (refresh_at_ <= now_) refresh_at_ = now_ + kMerge;
}

void FolderWatch::Failed() { refresh_at_ = now_ + kRetry; }

void FolderWatch::NotifyWhenComplete() {
  const bool whole = in_flight_ == 0 && listed_ && nodes_.size() == stale_.size();
  if (!whole || !std::exchange(differs_, false)) return;
  told_ = true;
  changed_();
}

}  // namespace firn
