#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/dubbo/dubbo_node.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Maintains a server's provider nodes in Dubbo's tree, one for each interface.
//
//  1. The nodes exist while the server wants them. Their names contain its weight: for another
//     weight, one multi creates the new nodes and deletes the old ones, so consumers see no gap.
//  2. Each folder is listed before the server's first nodes, in each session, and every recheck
//     interval; missing folders are created. A node of the server's address with another name, or
//     of an earlier session, is replaced: it belongs to an earlier process or setting.
//  3. A missing node is created again; after a failure, following a random delay of up to 1 s.
//
// A provider node is an announcement, not a permission: no error here can cause a duplicate id.
// `coordinator` is that of OpenEnsemble, so the folders are open to every client. Owned by its
// control thread, except for announced() and registered().
class DubboPublisher {
 public:
  static constexpr Milliseconds kRetryMax{1'000};
  static constexpr Milliseconds kRecheckInterval{45'000};

  DubboPublisher(Coordinator& coordinator, Entropy& entropy, DubboProvider provider,
                 std::vector<DubboInterface> interfaces);

  // Sets the weight to announce; empty: the nodes are deleted.
  void Want(std::optional<int> weight) { wanted_ = weight; }

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

  // Whether nodes of this server may exist. Any thread.
  bool announced() const { return announced_; }
  // Whether ZooKeeper has confirmed the nodes in this session. Any thread.
  bool registered() const { return registered_; }

 private:
  Task<> DoDueWork();
  Task<> ReadNode();
  Task<> Send(std::vector<Write> writes, std::optional<int> weight);
  Task<> MakeFolders();
  std::vector<std::string> Names(int weight) const;
  void Hold(std::optional<int> weight);
  void ReadAgainSoon();

  Entropy& entropy_;
  const DubboProvider provider_;
  const std::vector<DubboInterface> interfaces_;

  std::optional<int> wanted_;
  std::optional<int> held_;  // the weight in the nodes' names; empty: there are none
  std::atomic<bool> announced_{false};
  std::atomic<bool> registered_{false};
  int64_t session_ = 0;
  bool look_ = true;     // the folders have to be listed before the next write
  bool replace_ = true;  // nodes may belong to an earlier session
  BootMs not_before_;
  BootMs last_look_;
  AsyncRegistry async_registry_;
  Task<> task_;  // one conversation at a time
};

}  // namespace firn
