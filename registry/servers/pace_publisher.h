#pragma once

#include <string>
#include <string_view>

#include "common/base/units.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/pace.h"

namespace firn {

// Writes what this server has done of late, every few seconds, whether it has done anything or not:
// whoever is silent has not written. A write that fails is left to the next one.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class PacePublisher {
 public:
  static constexpr Milliseconds kEvery{5'000};

  // `coordinator` must outlive it. `address` is the one that clients connect to.
  PacePublisher(Coordinator& coordinator, std::string_view address);

  // Whether it is time to tell again: kEvery after the last time, or after it was first asked.
  bool IsDue(BootMs now);
  void Tell(const ServerPace& pace, BootMs now);

 private:
  void Make();

  Coordinator& coordinator_;
  const std::string path_;
  std::string text_;
  BootMs due_;
  bool begun_ = false, busy_ = false;
  CallbackGuard guard_;
};

}  // namespace firn
