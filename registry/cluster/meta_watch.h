#pragma once

#include <functional>
#include <optional>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A read-only copy of the cluster's root node that follows the registry, for code that has to know
// the cluster.
//
//  1. It is read in each new session, after each notification, and every 30 to 60 s.
//  2. `told` is called with each answer that differs from the previous one: the root node's
//     contents, or why they cannot be read (kNotFound, kCorrupt, kDenied).
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
  void OnRead(const Result<Node>& node);

  Coordinator& coordinator_;
  Entropy& entropy_;
  const Told told_;
  std::optional<Result<ClusterMeta>> last_told_;
  int64_t session_ = 0;
  bool reading_ = false;
  bool stale_ = true;
  BootMs now_;
  BootMs not_before_;
  BootMs reread_at_;

  CallbackGuard guard_;
};

}  // namespace firn
