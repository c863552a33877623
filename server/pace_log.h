#pragma once

#include <deque>
#include <functional>
#include <mutex>

#include "common/base/units.h"
#include "registry/servers/pace.h"

namespace firn {

// A server's history of the past 15 minutes, for charts that are complete when they are opened.
//
// Tick belongs to one thread; Read may be called by any. The newest sample of Read is of the period
// that has begun, so that a chart shows at once what happens.
class PaceLog {
 public:
  // Returns the activity since the end of the period before. `ends`: the next period begins now.
  using Measure = std::function<ServerPace(BootMs now, bool ends)>;

  PaceLog(BootMs started, Measure measure) : measure_(std::move(measure)), newest_end_(started) {}

  // Takes the sample that is due. Call it about every 50 ms.
  void Tick(BootMs now);

  PaceHistory Read(BootMs now) const;

 private:
  const Measure measure_;
  mutable std::mutex mutex_;  // guards the calls of measure_ and the members below
  std::deque<PaceHistory::Sample> samples_;
  BootMs newest_end_;
};

}  // namespace firn
