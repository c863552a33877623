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

// A copy of the cluster's root node that follows the registry, for those who must know which
// cluster it is and change nothing.
//
//  1. It is read in each new session, after each notice, and every 30 to 60 s anyway.
//  2. `told` is called with each answer that differs from the one before: the meta, or why there is
//     none (kNotFound, kCorrupt, kDenied).
//  3. A registry that is away changes nothing: it is asked again after a second.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class MetaWatch {
 public:
  static constexpr Milliseconds kRetry{1000};
  static constexpr Milliseconds kRereadMin{30'000};

  using Told = std::function<void(const Result<ClusterMeta>&)>;

  MetaWatch(Coordinator& coordinator, Entropy& entropy, Told told);

  // Does what is due. Call every 50 ms or so.
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
