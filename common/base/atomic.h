#pragma once

#include <atomic>
#include <mutex>

namespace firn {

// Atomics that issuing threads share, and a hint for spin loops. These are only aliases of the
// standard's types: a test of all thread interleavings compiles the same files with another header
// of this name (tests/support/interleaved).
template <typename T>
using Atomic = std::atomic<T>;
using Mutex = std::mutex;

// Tells the processor that this thread spins until another one makes progress.
inline void PauseOnce() {
#if defined(__x86_64__)
  __builtin_ia32_pause();  // its header has 40,000 lines
#endif
}

}  // namespace firn
