#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace firn::client {

// A counter on which callers sleep. Thread-safe.
class Bell {
 public:
  uint32_t rings() const { return rings_.load(std::memory_order_acquire); }
  // Blocks until the bell has rung since rings() returned `seen`. May return early.
  void Await(uint32_t seen);
  // Wakes every sleeping caller, with at most one system call.
  void Ring();

 private:
  std::atomic<uint32_t> rings_ = 0;  // a futex
  std::atomic<uint32_t> sleepers_ = 0;
};

// The bells of one IO thread's blocking calls. Calls that start in the same turn usually end in the
// same turn, because they leave in one write. So they share a bell, and one system call wakes all
// their callers.
class Bells {
 public:
  // Maximum number of calls that join a bell before the next bell is used. A bell also wakes
  // callers whose calls have not ended. A bell is reused after 64 turns or 1,024 calls; it can then
  // have more callers.
  static constexpr size_t kCallsMax = 16;
  static constexpr size_t kBells = 64;

  // Returns the bell for a call that begins now. Any thread.
  static std::shared_ptr<Bell> Join(const std::shared_ptr<Bells>& bells) {
    const size_t call = bells->calls_.fetch_add(1, std::memory_order_relaxed);
    return {bells, &bells->bells_[call / kCallsMax % kBells]};
  }

  // --- the IO thread ----------------------------------------------------------------------------

  // Makes calls that begin from now on join another bell.
  void UseNext() {
    const size_t calls = calls_.load(std::memory_order_relaxed);
    calls_.fetch_add(kCallsMax - calls % kCallsMax, std::memory_order_relaxed);
  }
  // Rings the bell at the next RingAll, once.
  void RingLater(Bell& bell);
  void RingAll();

 private:
  std::array<Bell, kBells> bells_;
  std::atomic<size_t> calls_ = 0;  // calls that have joined, and places left empty
  std::vector<Bell*> to_ring_;     // without duplicates
};

}  // namespace firn::client
