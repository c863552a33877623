#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "common/base/units.h"
#include "registry/servers/pace.h"

namespace firn {

// A server's history of the past 15 minutes, for charts that are complete when they are opened.
//
// Tick belongs to one thread; Read may be called by any.
class PaceLog {
 public:
  // Returns the activity since the previous call.
  using Measure = std::function<ServerPace(BootMs now)>;

  PaceLog(BootMs started, Measure measure) : measure_(std::move(measure)), newest_end_(started) {}

  // Takes the sample that is due. Call it about every 50 ms.
  void Tick(BootMs now);

  PaceHistory Read(BootMs now) const;

 private:
  const Measure measure_;
  mutable std::mutex mutex_;  // guards the members below, only while they are copied
  std::deque<PaceHistory::Sample> samples_;
  BootMs newest_end_;
};

}  // namespace firn
