#include "server/node/name_looks.h"

#include "common/tag/tag_name.h"
#include "registry/cluster/tag_node.h"

namespace firn {
namespace {

constexpr Milliseconds kSecond{1'000};
constexpr Milliseconds kKept{2'000};  // longer than calls wait

}  // namespace

TagSeeker::Found NameLooks::Seek(std::string_view name, uint64_t& ticket) {
  if (!CheckTagName(name).ok()) return Found::kNothing;
  const std::lock_guard lock(mutex_);
  if (!reachable_) return Found::kUnanswered;
  auto looks = looks_.find(name);
  if (ticket != 0) {
    if (looks == looks_.end()) return Found::kUnanswered;
    return looks->second.answered < ticket ? Found::kLooking : looks->second.found;
  }
  if (looks == looks_.end()) {
    if (left_ == 0) return Found::kNothing;  // beyond the budget, names take no memory either
    looks = looks_.emplace(name, Looks{}).first;
  }
  Looks& wanted = looks->second;
  ticket = wanted.sent + 1;  // a look in progress may have been answered before the call came
  if (wanted.wanted >= ticket) return Found::kLooking;
  if (left_ == 0) return Found::kNothing;
  --left_;
  wanted.wanted = ticket;
  return Found::kLooking;
}

void NameLooks::Tick(BootMs now) {
  now_ = now;
  async_registry_.Tick(now);
  const std::vector<std::string> names = TakeWanted();
  std::erase_if(looking_, [](const auto& look) { return !look.second.busy(); });
  for (const std::string& name : names) {
    Task<>& look = looking_[name] = Look(name);
    async_registry_.Start(look);
  }
}

std::vector<std::string> NameLooks::TakeWanted() {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  reachable_ = async_registry_.session() != 0;
  if (now_ - since_ >= kSecond) {
    since_ = now_;
    left_ = kPerSecond;
  }
  for (auto& [name, looks] : looks_) {
    if (looks.sent != looks.answered || looks.wanted == looks.sent) continue;
    looks.sent = looks.wanted;
    names.push_back(name);
  }
  std::erase_if(looks_, [this](const auto& entry) {
    const Looks& looks = entry.second;
    return looks.wanted == looks.answered && now_ - looks.idle_since > kKept;
  });
  return names;
}

Task<> NameLooks::Look(std::string name) {
  const std::vector<std::string> paths{TagPath(name)};
  Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
  bool there = nodes.ok() && nodes->front().has_value();
  if (there) there = !ReadTagNode(name, nodes->front()->data).value_or({}).deleted;
  if (there) there_(name);
  const std::lock_guard lock(mutex_);
  Looks& looks = looks_[name];
  looks.answered = looks.sent;
  looks.found = there ? Found::kLooking : Found::kNothing;
  if (!nodes.ok()) looks.found = Found::kUnanswered;
  looks.idle_since = now_;
}

}  // namespace firn
