#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "registry/seam/coordinator.h"

namespace firn {

// Arithmetic of node versions. A version counts a node's sets in 32 bits, as ZooKeeper does, and
// wraps (ZOOKEEPER-4743): 2147483647 is followed by -2147483648, and -2, on servers of today, by
// -1, which newer ones skip. Two versions are compared by the sign of their 32-bit difference, so
// "older" means fewer than 2^31 sets ago. Pure functions.
//
// Sharp edge: at -1 nothing can be guarded, because -1 means "any version". So Firn leaves no node
// there: AddSet skips it. A node at -1 was set by another program; no write is based on it until
// `firn restore` has moved it to another version.
inline constexpr int64_t kUnguardedVersion = Write::kAnyVersion;

// Returns the version after one more set.
constexpr int64_t NextVersion(int64_t version) {
  return static_cast<int32_t>(static_cast<uint32_t>(version) + 1);
}

constexpr bool IsOlder(int64_t version, int64_t than) {
  return static_cast<int32_t>(static_cast<uint32_t>(version) - static_cast<uint32_t>(than)) < 0;
}

// Whether AddSet from `version` may have left `after`: from -2, 0 or, where the servers skip -1, 1.
constexpr bool Follows(int64_t version, int64_t after) {
  if (version == kUnguardedVersion - 1) return after == 0 || after == 1;
  return version != kUnguardedVersion && after == NextVersion(version);
}

// Adds the writes that set the node at `version` to `data` and leave it at a version that can be
// guarded: one set, or from -2 two sets of the same data. Returns the index of the last one.
size_t AddSet(std::vector<Write>& writes, const std::string& path, const std::string& data,
              int64_t version);

// Returns a sentence about a node at version -1.
std::string UnguardedVersionFault(const std::string& what);

}  // namespace firn
