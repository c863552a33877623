#include "server/root_keeper.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/id/rack_split.h"
#include "common/log/log.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/slot.h"

namespace firn {
namespace {

constexpr size_t kBatch = 32;

// Ignores the children: starting servers create nodes below the root node.
bool IsUnchanged(const NodeStat& before, const NodeStat& after) {
  return before.version == after.version && before.created_zxid == after.created_zxid;
}

}  // namespace

RootKeeper::RootKeeper(Coordinator& coordinator, Entropy& entropy, std::string stem)
    : entropy_(entropy), stem_(std::move(stem)), async_registry_(coordinator) {}

void RootKeeper::Tick(BootMs now, const std::string& uuid) {
  async_registry_.Tick(now);
  if (uuid.empty() || stem_.empty()) return;
  if (uuid_ != uuid) {
    if (!Load(uuid)) return;
    uuid_ = uuid;
  }
  if (!loaded()) return;
  const bool new_session =
      std::exchange(session_, async_registry_.session()) != async_registry_.session();
  if (new_session) whole_ = false;
  if (session_ == 0 || task_.busy()) return;
  *stale_ |= new_session || now >= reread_at_;
  if (!*stale_ || (!new_session && now < not_before_)) return;
  *stale_ = false;
  const auto spread = static_cast<uint64_t>(kRereadMin.count());
  reread_at_ = now + kRereadMin + Milliseconds(static_cast<int64_t>(entropy_.Below(spread)));
  not_before_ = now + kRetry;
  task_ = ReadRoot();
  async_registry_.Start(task_);
}

std::shared_ptr<const RootSettings> RootKeeper::settings() const {
  const std::scoped_lock lock(mutex_);
  return settings_;
}

std::shared_ptr<const Backup> RootKeeper::kept() const {
  const std::scoped_lock lock(mutex_);
  return kept_;
}

std::shared_ptr<const RestoreMemory> RootKeeper::unfinished() const {
  const std::scoped_lock lock(mutex_);
  return unfinished_;
}

bool RootKeeper::Load(const std::string& uuid) {
  ++loads_;
  const bool posted = thread_.Post([this, uuid] {
    const Result<RootSettings> root = ReadKeptRoot(stem_, uuid);
    const std::string folder = std::filesystem::path(stem_).parent_path();
    Result<Backup> kept = ReadStateDocument(folder, uuid);
    for (const Status& read : {root.status(), kept.status()}) {
      if (read.ok() || read.code() == Code::kNotFound) continue;
      LogWarning("state_unusable") << "the state folder is of no use for a restore: " << read;
    }
    {
      const std::scoped_lock lock(mutex_);
      settings_ = root.ok() ? std::make_shared<const RootSettings>(*root) : nullptr;
      kept_ = std::make_shared<const Backup>(kept.ok() ? *std::move(kept)
                                                       : Backup{.checksum = IdentityOf(folder)});
    }
    ++loads_done_;
  });
  if (!posted) --loads_;
  return posted;
}

Task<> RootKeeper::ReadRoot() {
  const auto notice = [stale = stale_] { *stale = true; };
  const std::string root_path = kMetaPath, machines_path = kMachinesPath;
  Result<Node> root = co_await async_registry_.Read(root_path, notice);
  Result<Node> machines = co_await async_registry_.Read(machines_path, notice);
  const Result<ClusterMeta> meta = root.ok() ? ParseMeta(root->data) : root.status();
  if (root.code() != Code::kUnavailable) {
    // No or another cluster has no memory of a restore of this one.
    const ClusterMeta as_read = meta.ok() && meta->uuid == uuid_ ? *meta : ClusterMeta();
    co_await ReadUnfinished(as_read);
  }
  if (!meta.ok() || !machines.ok() || meta->frozen || meta->uuid != uuid_) {
    *stale_ |= root.code() == Code::kUnavailable || machines.code() == Code::kUnavailable;
    co_return;
  }
  const std::string era_path = EraPath(meta->era);
  Result<Node> era = co_await async_registry_.Read(era_path);
  if (!era.ok()) {
    *stale_ |= era.code() == Code::kUnavailable;
    co_return;
  }
  const std::string settings_path = kSettingsPath;
  Result<Node> beside = co_await async_registry_.Read(settings_path);
  const Result<ClusterSettings> settings_read = SettingsIn(beside);
  if (!settings_read.ok()) {
    *stale_ |= beside.code() == Code::kUnavailable;
    co_return;
  }
  RootSettings seen = SettingsOf(*meta, root->stat.version, *settings_read);
  seen.machines_version = machines->stat.version;
  seen.era_began = era->stat.modified;  // this node is never set, so its time is its creation
  const std::shared_ptr<const RootSettings> known = settings();
  const bool same = known && known->era == seen.era && known->version == seen.version &&
                    known->window == seen.window && known->lease_share == seen.lease_share &&
                    known->settings_version == seen.settings_version &&
                    known->machines_version == seen.machines_version;
  if (same && whole_ && async_registry_.now() < read_all_at_) co_return;
  Result<RootSettings> all = co_await ReadAll(seen);
  if (!all.ok()) {
    *stale_ |= all.code() == Code::kUnavailable;
    co_return;
  }
  Result<Node> again = co_await async_registry_.Read(root_path);
  if (!again.ok() || !IsUnchanged(root->stat, again->stat)) {
    *stale_ |= again.code() == Code::kUnavailable;  // a change is notified
    co_return;
  }
  whole_ = true;
  read_all_at_ = async_registry_.now() + kReadAllEvery;
  Take(*std::move(all));
}

// A later run begins with another version of the root node, which is notified.
Task<> RootKeeper::ReadUnfinished(ClusterMeta root) {
  std::shared_ptr<const RestoreMemory> seen;
  if (root.frozen) {
    const std::string path = kRestorePath;
    Result<Node> node = co_await async_registry_.Read(path);
    Result<RestoreMemoryAsRead> left = RestoreMemoryIn(node, root);
    if (!left.ok()) {
      *stale_ |= node.code() == Code::kUnavailable;
      co_return;
    }
    if (left->memory) seen = std::make_shared<const RestoreMemory>(*std::move(left->memory));
  }
  const std::scoped_lock lock(mutex_);
  unfinished_ = std::move(seen);
}

Task<Result<RootSettings>> RootKeeper::ReadAll(RootSettings settings) {
  const Result<Layout> layout = Layout::Parse(settings.layout);
  if (!layout.ok()) co_return layout.status();
  const Result<RackSplit> split = RackSplit::Make(*layout, settings.rack_bits);
  if (!split.ok()) co_return split.status();
  std::map<MachineId, std::string> paths;
  for (uint32_t rack = 0; rack < split->racks(); ++rack) {
    const std::string path = RackPath(rack);
    Result<std::vector<std::string>> names = co_await async_registry_.List(path);
    if (!names.ok()) co_return names.status();
    for (const std::string& name : *names) {
      const auto worker = ParseIndex<uint32_t>(name);
      if (!worker || *worker >= split->workers()) continue;
      settings.workers = std::max(settings.workers, *worker + 1);
      const Result<MachineId> machine = split->Join(*worker, rack);
      if (machine.ok()) paths.emplace(*machine, SlotPath({rack, *worker}));
    }
  }
  for (auto from = paths.begin(); from != paths.end();) {
    std::vector<MachineId> machines;
    std::vector<std::string> batch;
    for (; from != paths.end() && batch.size() < kBatch; ++from) {
      machines.push_back(from->first);
      batch.push_back(from->second);
    }
    Readings read = co_await async_registry_.ReadAll(batch);
    std::ranges::sort(read, {}, &Reading::which);
    for (const auto& [which, node] : read) {
      if (!node.ok() && node.code() != Code::kCorrupt) co_return node.status();
      const Result<SlotRecord> record = node.ok() ? ParseSlotRecord(node->data) : node.status();
      if (record.ok()) settings.Add(machines[which], *record);
    }
  }
  co_return settings;
}

void RootKeeper::Take(RootSettings settings) {
  const std::shared_ptr<const RootSettings> known = this->settings();
  if (known && known->uuid == settings.uuid) {
    // The settings node may be missing or older, so a window is never lowered.
    const Milliseconds window = std::max(settings.window, known->window);
    if (settings.OlderThan(*known)) settings = *known;
    settings.window = window;
  }
  if (known && *known == settings && !unsaved_) return;
  const auto next = std::make_shared<const RootSettings>(std::move(settings));
  {
    const std::scoped_lock lock(mutex_);
    settings_ = next;
  }
  unsaved_ = true;
  const bool posted = thread_.Post([this, next] {
    const Status saved = WriteKeptRoot(stem_, *next);
    if (!saved.ok()) {
      LogError("state_failed") << "the root node's settings cannot be saved: " << saved;
    }
    unsaved_ = !saved.ok();
  });
  if (!posted) LogError("state_failed") << "the thread that saves the root node cannot start";
}

}  // namespace firn
