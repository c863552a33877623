#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A read-only copy of the cluster's root node that follows the registry, for code that depends on
// the cluster's identity.
//
//  1. It is read in each new session, after each notification, and every 30 to 60 s.
//  2. `told` is called after each change of the root node, with its contents or why they cannot be
//     read (kNotFound, kCorrupt, kDenied). A change that was undone counts, too: code that
//     read the node in between must read it again.
//  3. An unreachable registry changes nothing: the read is retried after a second.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class MetaWatch {
 public:
  static constexpr Milliseconds kRetry{1000};
  static constexpr Milliseconds kRereadMin{30'000};

  using Told = std::function<void(const Result<ClusterMeta>&)>;

  MetaWatch(Coordinator& coordinator, Entropy& entropy, Told told);

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

 private:
  // A version of the root node, or why there is none.
  struct Seen {
    Status status;
    int64_t version = 0;
    int64_t created_zxid = 0;
    bool operator==(const Seen&) const = default;
  };

  void OnRead(const Result<Node>& node);

  Coordinator& coordinator_;
  Entropy& entropy_;
  const Told told_;
  std::optional<Seen> last_told_;
  int64_t session_ = 0;
  bool reading_ = false;
  bool stale_ = true;
  BootMs now_;
  BootMs not_before_;
  BootMs reread_at_;

  CallbackGuard guard_;
};

}  // namespace firn
