#include "client/call/bells.h"

#include <algorithm>
#include <climits>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace firn::client {

// std::atomic::wait yields the processor four times before it sleeps, which halves the rate of 8
// callers on two busy cores.
void Bell::Await(uint32_t seen) {
  static_assert(sizeof rings_ == sizeof(uint32_t) && std::atomic<uint32_t>::is_always_lock_free);
  // Ring changes rings_ before it reads sleepers_, so either it sees this caller, or the kernel
  // sees the new value and does not block.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  syscall(SYS_futex, &rings_, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Bell::Ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  syscall(SYS_futex, &rings_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void Bells::RingLater(Bell& bell) {
  if (std::ranges::find(to_ring_, &bell) == to_ring_.end()) to_ring_.push_back(&bell);
}

void Bells::RingAll() {
  for (Bell* const bell : to_ring_) bell->Ring();
  to_ring_.clear();
}

}  // namespace firn::client
