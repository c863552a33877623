#include "common/id/claim.h"

namespace firn {

void Claim::ExtendTo(WallMs limit) {
  const int64_t end = layout_.TickAt(limit).count();
  int64_t seen = end_tick_.load(std::memory_order_relaxed);
  while (end > seen && !end_tick_.compare_exchange_weak(seen, end, std::memory_order_release)) {
  }
}

}  // namespace firn
