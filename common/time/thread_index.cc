#include "common/time/thread_index.h"

#include <array>
#include <atomic>

namespace firn {
namespace {

// The numbers of the process's threads. In a forked child the numbers of the parent's other threads
// stay taken.
constinit std::array<std::atomic<bool>, kThreadIndexMax> taken{};

// Releases the number at the end of its thread.
struct Holder {
  ~Holder() {
    if (index < 0) return;
    thread_index_word = -1;  // for destructors that run later
    taken[static_cast<size_t>(index)].store(false, std::memory_order_release);
  }
  int index = -1;
};

}  // namespace

constinit thread_local int thread_index_word = kThreadIndexUnset;

int TakeThreadIndex() {
  thread_local Holder holder;
  thread_index_word = -1;
  for (int i = 0; i < kThreadIndexMax; ++i) {
    auto& flag = taken[static_cast<size_t>(i)];
    if (flag.load(std::memory_order_relaxed) || flag.exchange(true, std::memory_order_acquire)) {
      continue;
    }
    holder.index = i;
    thread_index_word = i;
    break;
  }
  return thread_index_word;
}

}  // namespace firn
