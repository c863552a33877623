#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "common/time/clock.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/server_roll.h"
#include "server/front/desk/server_list.h"

namespace firn {

// The list of servers that this one sends to its clients: the servers in the registry, this one
// included; without a registry only this one.
//
// Shown may be called by any thread; the rest belongs to the control thread.
class ServerListing {
 public:
  // `itself`: empty if there is a registry, which lists it. References must outlive this.
  ServerListing(Coordinator& coordinator, std::string application,
                std::optional<front::ListedServer> itself, const Clock& clock);

  // Does the work that is due. Call about every 50 ms, with the other facts about this server.
  void Tick(Now now, const std::string& cluster_uuid, ServerPhase phase);

  front::ShownServers Shown() const;
  // The number of connections that the listed servers may have to this one: one each, and a new one
  // before the loss of the first is noticed here.
  size_t connections() const { return 2 * list_.servers.size(); }

 private:
  void OnRoll(int64_t version, const DirectorySnapshot& snapshot);
  void ListItself(WallMs now, ServerPhase phase);
  void Show(BootMs confirmed);

  const Clock& clock_;
  ServerRoll roll_;
  std::optional<front::ListedServer> itself_;
  front::ListedServers list_;  // published once it has a version
  bool differs_ = false;       // from shown_

  mutable std::mutex mutex_;  // guards the members below
  std::shared_ptr<const front::ListedServers> shown_;
  BootMs confirmed_;
};

}  // namespace firn
