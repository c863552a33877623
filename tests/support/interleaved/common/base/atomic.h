#pragma once

#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "tests/support/threads/interleaving.h"

namespace firn {

// Replaces the product's common/base/atomic.h where an Interleaving runs the threads. It has the
// size of the value, so that it fits wherever the product's does.
template <typename T>
class Atomic {
  using At = std::source_location;
  using Order = std::memory_order;
  static constexpr Order kDefault = std::memory_order_seq_cst;

 public:
  Atomic() : Atomic(T{}) {}
  Atomic(T value) : value_(value) {  // NOLINT(google-explicit-constructor): as std::atomic
    if (auto* run = Interleaving::Current()) run->Make(this, Bits(value));
  }
  ~Atomic() {
    if (auto* run = Interleaving::Current()) run->Forget(this);
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;

  T load(Order order = kDefault, At at = At::current()) const {
    auto* run = Interleaving::Current();
    return run == nullptr ? value_ : Value(run->Load(Here(at), order));
  }

  void store(T value, Order order = kDefault, At at = At::current()) {
    if (auto* run = Interleaving::Current()) run->Store(Here(at), Bits(value), order);
    value_ = value;
  }

  T exchange(T value, Order order = kDefault, At at = At::current()) {
    return Modify({Change::Kind::kExchange, Bits(value)}, order, order, at);
  }

  T fetch_add(T value, Order order = kDefault, At at = At::current()) {
    return Modify({Change::Kind::kAdd, Bits(value)}, order, order, at);
  }

  T fetch_sub(T value, Order order = kDefault, At at = At::current()) {
    return Modify({Change::Kind::kAdd, uint64_t{0} - Bits(value)}, order, order, at);
  }

  bool compare_exchange_weak(T& expected, T value, Order order = kDefault, At at = At::current()) {
    const T found = Modify({Change::Kind::kCompareExchange, Bits(value), Bits(expected)}, order,
                           OnFailure(order), at);
    if (Bits(found) == Bits(expected)) return true;
    expected = found;
    return false;
  }

 private:
  static uint64_t Bits(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(value));
    return bits;
  }
  static T Value(uint64_t bits) {
    T value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  static Order OnFailure(Order order) {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    return order == std::memory_order_release ? std::memory_order_relaxed : order;
  }

  Interleaving::Access Here(At at) const { return {this, Bits(value_), std::is_pointer_v<T>, at}; }

  T Modify(const Change& change, Order order, Order otherwise, At at) {
    auto* run = Interleaving::Current();
    const uint64_t found =
        run == nullptr ? Bits(value_) : run->Modify(Here(at), change, order, otherwise);
    const bool as_expected =
        change.kind != Change::Kind::kCompareExchange || found == change.expected;
    const bool adds = change.kind == Change::Kind::kAdd;
    if (as_expected) value_ = Value(adds ? found + change.operand : change.operand);
    return Value(found);
  }

  T value_;  // the newest
};

class Mutex {
 public:
  void lock() {
    if (auto* run = Interleaving::Current()) run->Lock(this);
  }
  bool try_lock() {
    auto* run = Interleaving::Current();
    return run == nullptr || run->TryLock(this);
  }
  void unlock() {
    if (auto* run = Interleaving::Current()) run->Unlock(this);
  }
};

inline void PauseOnce() {
  if (auto* run = Interleaving::Current()) run->Rest();
}

}  // namespace firn
