#pragma once

#include <cstdint>

namespace firn {

// Where random numbers come from, so that a simulation can replay them. Thread-safe unless an
// implementation says otherwise.
class Entropy {
 public:
  virtual ~Entropy() = default;

  // 64 independent, evenly spread bits.
  virtual uint64_t Next() = 0;

  // An even choice of [0, n). `n` must be positive.
  uint64_t Below(uint64_t n);
};

// The kernel's random numbers; unguessable. Lives as long as the program.
Entropy& SystemEntropy();

// A repeatable sequence (SplitMix64) for simulations, jitter and sequence starts: the same seed
// gives the same numbers on every machine. Guessable. One thread at a time.
class SeededEntropy final : public Entropy {
 public:
  explicit SeededEntropy(uint64_t seed) : state_(seed) {}

  uint64_t Next() override;

 private:
  uint64_t state_;
};

}  // namespace firn
