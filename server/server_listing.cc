#include "server/server_listing.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

// A server that is offline is announced as draining; the operator's setting distinguishes them.
ServerPhase PhaseOf(const DirectoryEntry& entry) {
  const bool offline = entry.configurator.disabled && entry.report.phase == ServerPhase::kDraining;
  return offline ? ServerPhase::kOffline : entry.report.phase;
}

front::ListedServer Listed(const DirectoryEntry& entry) {
  return {.address = entry.provider.address,
          .rack = entry.provider.rack,
          .weight = entry.configurator.weight,
          .online = !entry.configurator.disabled,
          .phase = PhaseOf(entry),
          .tls = entry.provider.tls};
}

}  // namespace

ServerListing::ServerListing(Coordinator& coordinator, std::string application,
                             std::optional<front::ListedServer> itself, const Clock& clock)
    : clock_(clock),
      roll_(coordinator, [this](int64_t version,
                                const DirectorySnapshot& snapshot) { OnRoll(version, snapshot); }),
      itself_(std::move(itself)) {
  list_.application = std::move(application);
}

void ServerListing::Tick(Now now, const std::string& cluster_uuid, ServerPhase phase) {
  if (list_.cluster_uuid != cluster_uuid) {
    list_.cluster_uuid = cluster_uuid;
    differs_ = true;
  }
  if (itself_) {
    ListItself(now.wall, phase);
    Show(now.boot);
  } else {
    roll_.Tick(now.boot);
    if (const auto confirmed = roll_.confirmed()) Show(*confirmed);
  }
}

// Without a registry, the version is the time, or the last version + 1 if the clock was set back.
void ServerListing::ListItself(WallMs now, ServerPhase phase) {
  itself_->phase = phase;
  itself_->online = phase != ServerPhase::kOffline;
  if (list_.servers == std::vector{*itself_}) return;
  list_.servers = {*itself_};
  list_.version = std::max({now.ms(), list_.version + 1, int64_t{1}});
  differs_ = true;
}

void ServerListing::OnRoll(int64_t version, const DirectorySnapshot& snapshot) {
  list_.version = version;
  list_.servers.clear();
  for (const DirectoryEntry* entry : OnePerAddress(snapshot)) {
    list_.servers.push_back(Listed(*entry));
  }
  differs_ = true;
}

void ServerListing::Show(BootMs confirmed) {
  std::shared_ptr<const front::ListedServers> fresh;
  if (std::exchange(differs_, false)) fresh = std::make_shared<front::ListedServers>(list_);
  const std::scoped_lock lock(mutex_);
  confirmed_ = confirmed;
  if (fresh != nullptr) shown_.swap(fresh);  // the old list is destroyed after the unlock
}

front::ShownServers ServerListing::Shown() const {
  front::ShownServers shown;
  BootMs confirmed;
  {
    const std::scoped_lock lock(mutex_);
    shown.list = shown_;
    confirmed = confirmed_;
  }
  shown.age = std::max(Milliseconds(0), clock_.Boot() - confirmed);
  return shown;
}

}  // namespace firn
