#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// The hash of Fowler, Noll and Vo (FNV-1a). It detects torn and different data, but not forged
// data. Files and names contain it, so it must never change.
inline constexpr uint64_t kFnvSeed = 0xcbf29ce484222325;

constexpr uint64_t Fnv1a(std::string_view bytes, uint64_t seed = kFnvSeed) {
  uint64_t hash = seed;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace firn
