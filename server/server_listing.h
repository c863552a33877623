#pragma once

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

// Which servers there are, as this one tells its clients. With a registry: what stands there, which
// is this server and its neighbours. Without one: itself.
//
// Shown may be called by any thread; the rest belongs to the control thread.
class ServerListing {
 public:
  // `itself`: empty where there is a registry, which knows it. References must outlive this.
  ServerListing(Coordinator& coordinator, std::string application,
                std::optional<front::ListedServer> itself, const Clock& clock);

  // Does what is due. Call every 50 ms or so, with what else is known of this server by now.
  void Tick(Now now, const std::string& cluster_uuid, ServerPhase phase);

  front::ShownServers Shown() const;

 private:
  void OnRoll(int64_t version, const DirectorySnapshot& snapshot);
  void ListItself(WallMs now, ServerPhase phase);
  void Show(BootMs confirmed);

  const Clock& clock_;
  ServerRoll roll_;
  std::optional<front::ListedServer> itself_;
  front::ListedServers list_;  // as it is to be shown, once it has a version
  bool differs_ = false;       // from what is shown

  mutable std::mutex mutex_;  // guards what is below, for as long as it takes to copy it
  std::shared_ptr<const front::ListedServers> shown_;
  BootMs confirmed_;
};

}  // namespace firn
