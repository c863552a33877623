#pragma once

#include <array>
#include <cstdint>

#include "common/base/units.h"
#include "registry/servers/pace.h"
#include "server/front/desk/desk_counters.h"
#include "server/front/net/counters.h"

namespace firn {

// A server's activity since the last reading, from the totals that it counts since its start.
// Thread-compatible.
class PaceMeter {
 public:
  explicit PaceMeter(BootMs started) : last_{.at = started} {}

  // `totals` are of the public port. `now` is later than at the last reading, or at the start.
  ServerPace Read(const front::Totals& totals, const front::DeskCounters::Sums& sums, BootMs now);

  // Like Read, but the next call begins where this one did.
  ServerPace Peek(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                  BootMs now) const;

 private:
  struct Counted {
    BootMs at;
    int64_t ids = 0, calls = 0, refused = 0;
    std::array<uint64_t, front::LatencyCounts::kBuckets> took{};
  };
  static Counted Add(const front::Totals& totals, const front::DeskCounters::Sums& sums,
                     BootMs now);
  static ServerPace Between(const Counted& before, const Counted& now);

  Counted last_;
};

}  // namespace firn
