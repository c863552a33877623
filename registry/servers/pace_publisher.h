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

// Writes what this server has done of late, while somebody wants to know it.
//
//  1. The sign is read with a watch, and again every recheck interval. While it is not there,
//     nothing is written: a thousand servers of which nobody asks cost the registry nothing.
//  2. Once it is there, what was done until then is forgotten. The first word comes at a random
//     moment soon after, so that the servers of a cluster do not all write in one moment.
//  3. Then there is a word in every interval, whether anything was done or not: whoever is silent
//     has not written. A write that fails is left to the next one.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class PacePublisher {
 public:
  static constexpr Milliseconds kFirstAfter{1'000};
  static constexpr Milliseconds kEvery{5'000};
  static constexpr Milliseconds kRecheckInterval{45'000};

  // What was done since it was asked last.
  using Measure = std::function<ServerPace(BootMs now)>;

  // References must outlive it. `address` is the one that clients connect to.
  PacePublisher(Coordinator& coordinator, Entropy& entropy, std::string_view address,
                Measure measure);

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

 private:
  void Look();
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
