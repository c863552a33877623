#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/pace.h"

namespace firn {

// Publishes this server's recent rates while a viewer asks for them.
//
//  1. The node `wanted` is read with a watch, and again every recheck interval. While it does not
//     exist, nothing is written: without viewers, a thousand servers put no load on the registry.
//  2. When it appears, earlier counts are discarded. The first rate is written after a random
//     delay, so that the servers of a cluster do not all write at the same time.
//  3. Then a rate is written in every interval, also by an idle server: a missing rate means that
//     the server did not write. A failed write is not repeated before the next interval.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class PacePublisher {
 public:
  static constexpr Milliseconds kFirstAfter{1'000};
  static constexpr Milliseconds kEvery{5'000};
  static constexpr Milliseconds kRecheckInterval{45'000};

  // Returns the counts since the previous call.
  using Measure = std::function<ServerPace(BootMs now)>;

  // References must outlive it. Clients connect to `address`.
  PacePublisher(Coordinator& coordinator, Entropy& entropy, std::string_view address,
                Measure measure);

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

 private:
  void FindViewer();
  void OnSign(bool stands);
  void Tell();
  void Make();

  Coordinator& coordinator_;
  Entropy& entropy_;
  const std::string path_;
  const Measure measure_;
  std::string text_;
  BootMs now_, look_at_, tell_at_;
  bool looking_ = false, wanted_ = false, telling_ = false;
  CallbackGuard guard_;
};

}  // namespace firn
