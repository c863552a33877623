#include "common/time/entropy.h"

namespace firn {

uint64_t Entropy::Below(uint64_t n) {
  // Numbers below 2^64 mod n would make the first remainders likelier; each is drawn with a chance
  // below one half, so the expected number of draws is below two.
  const uint64_t unfair_below = (0 - n) % n;
  uint64_t draw = Next();
  while (draw < unfair_below) draw = Next();
  return draw % n;
}

uint64_t SeededEntropy::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace firn
