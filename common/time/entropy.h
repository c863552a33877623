#pragma once

#include <cstdint>

namespace firn {

// A source of random numbers, which a simulation can replay. Thread-safe unless an implementation
// says otherwise.
class Entropy {
 public:
  virtual ~Entropy() = default;

  // Returns 64 independent, uniformly distributed bits.
  virtual uint64_t Next() = 0;

  // Returns a uniformly distributed number in [0, n). `n` must be positive.
  uint64_t Below(uint64_t n);
};

// Returns the kernel's source, whose numbers are unpredictable. Lives as long as the program.
Entropy& SystemEntropy();

// A repeatable sequence (SplitMix64) for simulations, jitter and sequence starts: the same seed
// yields the same numbers on every machine. Predictable. One thread at a time.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : state_(seed) {}

  uint64_t Next() override;

 private:
  uint64_t state_;
};

}  // namespace firn
