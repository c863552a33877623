#pragma once

#include <atomic>
#include <mutex>

namespace firn {

// What issuing threads share, and how they wait for each other. These are names for the standard's
// own types and nothing more: a test that tries the orders in which threads may meet compiles the
// same files with another header of this name in front (tests/support/interleaved).
template <typename T>
using Atomic = std::atomic<T>;
using Mutex = std::mutex;

// A hint to the processor that this thread waits for another one.
inline void PauseOnce() {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // its header has 40,000 lines
#endif
}

}  // namespace firn
