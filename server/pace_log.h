#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "common/base/units.h"
#include "registry/servers/pace.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/net/counters.h"

namespace firn {

// Computes a server's activity between two readings of the totals since its start.
// Thread-compatible.
class PaceMeter {
 public:
  explicit PaceMeter(BootMs started) : last_{.at = started} {}

  // `totals`: of the public port. `now` must be later than at the last reading, or at the start.
  ServerPace Read(const front::Totals& totals, const front::DeskCounters::Sums& sums, BootMs now);

  // Like Read, without ending the period.
  ServerPace Peek(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                  BootMs now) const;

  // Whether more than 1 % of the calls of the last period that Read has ended, and at least 10,
  // were refused as OVERLOADED.
  bool overloaded() const { return overloaded_; }

 private:
  struct Counted {
    BootMs at;
    int64_t ids = 0, calls = 0, refused = 0, overloaded = 0;
    std::array<uint64_t, front::LatencyCounts::kBuckets> took{};
  };
  static Counted Add(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                     BootMs now);
  static ServerPace Between(const Counted& before, const Counted& now);

  Counted last_;
  bool overloaded_ = false;
};

// A server's history of the past 15 minutes: a newly opened chart is complete at once.
//
// Tick belongs to one thread; any thread may call Read. The newest sample of Read is of the
// unfinished period, so that a chart is up to date.
class PaceLog {
 public:
  // Returns the activity since the end of the last period. `ends`: the next period begins now.
  using Measure = std::function<ServerPace(BootMs now, bool ends)>;

  PaceLog(BootMs started, Measure measure) : measure_(std::move(measure)), newest_end_(started) {}

  // Takes the sample that is due. Call about every 50 ms.
  void Tick(BootMs now);

  PaceHistory Read(BootMs now) const;

 private:
  const Measure measure_;
  mutable std::mutex mutex_;  // guards the calls of measure_ and the members below
  std::deque<PaceHistory::Sample> samples_;
  BootMs newest_end_;
};

}  // namespace firn
