#pragma once

#include "client/micros.h"

namespace firn::client {

// How slow a server has been lately. Leans to the slow side: a slow answer counts at once and in
// full, quick ones bring the value down again over kDecay, and so does silence, so that a server
// that was slow once is tried again. A value, thread-compatible.
class PeakEwma {
 public:
  static constexpr Micros kDecay{1'000'000};

  void Observe(Micros took, Micros now);

  // Microseconds; 0 when nothing was observed yet.
  double At(Micros now) const;

  void Forget() { *this = PeakEwma(); }

 private:
  double value_us_ = 0;
  Micros last_{0};
};

}  // namespace firn::client
