#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// The partition of a tag, and the order in which servers take a partition. All servers must compute
// equal results, so these functions are part of the registry's format.

inline constexpr size_t kPartitions = 8;

size_t PartitionOf(std::string_view tag);

// Returns the rank of `address` among the candidates `servers` of the partition; 0 is the first.
// Rendezvous hashing: when a server joins or leaves, the others keep their order. An address that
// is not in the list comes last.
size_t RankOf(size_t partition, std::string_view address, const std::vector<std::string>& servers);

}  // namespace firn
