#include "server/lease/lease_shares.h"

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/parse.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/slot.h"

namespace firn {
namespace {

constexpr size_t kBatch = 32;

}  // namespace

LeaseShares::LeaseShares(Coordinator& coordinator, const RackSplit& split, uint32_t own_rack)
    : split_(split), own_rack_(own_rack), async_registry_(coordinator) {}

void LeaseShares::NoteRequest(std::optional<uint32_t> rack) {
  const uint32_t of = rack.value_or(own_rack_);
  if (of >= split_.racks()) return;
  racks_.insert(of);
  requested_ = true;
}

void LeaseShares::Tick(Now now) {
  now_ = now;
  async_registry_.Tick(now.boot);
  if (std::exchange(requested_, false)) {
    const BootMs soon = now.boot + kAfterRequest;
    due_ = std::min(due_.value_or(soon), soon);
  }
  if (now.boot - read_at_ >= kKeep) rooms_.clear();
  if (!due_ || now.boot < *due_ || task_.busy()) return;
  due_ = now.boot + kEvery;
  task_ = Read();
  async_registry_.Start(task_);
}

std::vector<LeaseRoom> LeaseShares::rooms() const { return rooms_; }

// A failed reading does not replace the previous one.
Task<> LeaseShares::Read() {
  const BootMs begun = now_.boot;
  const std::string root_path = kMetaPath;
  Result<Node> root = co_await async_registry_.Read(root_path);
  const Result<ClusterMeta> parsed = root.ok() ? ParseMeta(root->data) : root.status();
  if (!parsed.ok()) co_return;
  ClusterMeta meta = *parsed;
  const WallMs set_at = root->stat.modified;
  const std::string settings_path = kSettingsPath;
  Result<Node> beside = co_await async_registry_.Read(settings_path);
  const Result<ClusterSettings> settings = SettingsIn(beside);
  if (!settings.ok()) co_return;
  meta.lease_share = settings->LeaseShareUnder(meta);
  std::vector<LeaseRoom> rooms;
  const std::set<uint32_t> racks = racks_;
  for (const uint32_t rack : racks) {
    Result<LeaseShare> share = co_await ReadRack(rack, meta, set_at);
    if (!share.ok()) co_return;
    if (!share->leased) continue;
    rooms.push_back({.rack = rack, .usable = share->usable, .free = share->free});
  }
  rooms_ = std::move(rooms);
  read_at_ = begun;
}

Task<Result<LeaseShare>> LeaseShares::ReadRack(uint32_t rack, ClusterMeta meta, WallMs set_at) {
  const std::string rack_path = RackPath(rack);
  Result<std::vector<std::string>> names = co_await async_registry_.List(rack_path);
  if (!names.ok()) co_return names.status();
  std::vector<uint32_t> workers;
  for (const std::string& name : *names) {
    const auto worker = ParseIndex<uint32_t>(name);
    if (worker && *worker < split_.workers()) workers.push_back(*worker);
  }
  std::sort(workers.begin(), workers.end());
  LeaseShare share;
  size_t from = workers.size() - SlotsForLeases(workers.size(), meta.lease_share);
  for (; from < workers.size(); from += kBatch) {
    std::vector<std::string> paths;
    for (size_t i = from; i < std::min(workers.size(), from + kBatch); ++i) {
      paths.push_back(SlotPath({rack, workers[i]}));
    }
    Readings batch = co_await async_registry_.ReadAll(paths);
    for (const auto& [which, node] : batch) {
      const bool of_node = node.code() == Code::kNotFound || node.code() == Code::kCorrupt;
      if (!node.ok() && !of_node) co_return node.status();
      const Result<SlotRecord> record = node.ok() ? ParseSlotRecord(node->data) : node.status();
      if (record.ok()) share.Add(*record, ClusterTime(now_.wall, meta.floor, set_at));
    }
  }
  co_return share;
}

}  // namespace firn
