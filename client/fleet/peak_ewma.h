#pragma once

#include <atomic>

#include "common/time/micros.h"

namespace firn::client {

// How slow a server has been lately. Leans to the slow side: a slow answer counts at once and in
// full, quick ones bring the value down again over kDecay, and so does silence, so that a server
// that was slow once is tried again.
//
// Thread-safe without a lock: of two answers observed at the same moment one may be forgotten,
// which the next one makes good.
class PeakEwma {
 public:
  static constexpr Micros kDecay{1'000'000};

  void Observe(Micros took, Micros now);

  // Microseconds; 0 when nothing was observed yet.
  double At(Micros now) const;

  void Forget() { value_us_.store(0, std::memory_order_relaxed); }

 private:
  std::atomic<double> value_us_ = 0;
  std::atomic<Micros> last_{Micros(0)};
};

}  // namespace firn::client
