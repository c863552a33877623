#include "server/node/name_lookups.h"

#include "common/tag/tag_name.h"
#include "registry/cluster/tag_node.h"

namespace firn {
namespace {

constexpr Milliseconds kSecond{1'000};
constexpr Milliseconds kKept{2'000};  // since a call asked last; waiting calls do every few ms

}  // namespace

TagSeeker::Found NameLookups::Seek(std::string_view name, uint64_t& ticket) {
  if (!CheckTagName(name).ok()) return Found::kNothing;
  const std::lock_guard lock(mutex_);
  if (!reachable_) return Found::kUnanswered;
  auto found = readings_.find(name);
  if (ticket != 0) {
    if (found == readings_.end()) return Found::kUnanswered;
    found->second.idle_since = now_;
    return found->second.answered < ticket ? Found::kLooking : found->second.found;
  }
  if (found == readings_.end()) {
    if (left_ == 0) return Found::kTooMany;  // over budget: do not store the name either
    found = readings_.emplace(name, Readings{}).first;
  }
  Readings& wanted = found->second;
  ticket = wanted.sent + 1;  // the registry may have answered a reading in flight earlier
  if (wanted.wanted >= ticket) return Found::kLooking;
  if (left_ == 0) return Found::kTooMany;
  --left_;
  wanted.wanted = ticket;
  return Found::kLooking;
}

void NameLookups::Tick(BootMs now) {
  async_registry_.Tick(now);
  const std::vector<std::string> names = TakeWanted(now);
  std::erase_if(in_flight_, [](const auto& one) { return !one.second.busy(); });
  for (const std::string& name : names) {
    Task<>& reading = in_flight_[name] = LookUp(name);
    async_registry_.Start(reading);
  }
}

std::vector<std::string> NameLookups::TakeWanted(BootMs now) {
  std::vector<std::string> names;
  const std::lock_guard lock(mutex_);
  now_ = now;
  reachable_ = async_registry_.session() != 0;
  if (now_ - since_ >= kSecond) {
    since_ = now_;
    left_ = kPerSecond;
  }
  for (auto& [name, readings] : readings_) {
    if (readings.sent != readings.answered || readings.wanted == readings.sent) continue;
    readings.sent = readings.wanted;
    names.push_back(name);
  }
  std::erase_if(readings_, [this](const auto& entry) {
    const Readings& readings = entry.second;
    return readings.wanted == readings.answered && now_ - readings.idle_since > kKept;
  });
  return names;
}

Task<> NameLookups::LookUp(std::string name) {
  const std::vector<std::string> paths{TagPath(name)};
  Result<Nodes> nodes = co_await async_registry_.ReadSynced(paths);
  bool there = nodes.ok() && nodes->front().has_value();
  if (there) there = !ReadTagNode(name, nodes->front()->data).value_or({}).deleted;
  if (there) there_(name);
  const std::lock_guard lock(mutex_);
  Readings& readings = readings_[name];
  readings.answered = readings.sent;
  readings.found = there ? Found::kLooking : Found::kNothing;
  if (!nodes.ok()) readings.found = Found::kUnanswered;
  readings.idle_since = now_;
}

}  // namespace firn
