#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace firn {

// Which partition a tag belongs to, and which servers are to own a partition. All servers compute
// the same, so these functions are part of the registry's format.

inline constexpr size_t kPartitions = 8;

size_t PartitionOf(std::string_view tag);

// Returns how many of `servers` come before `address` in the order of the partition's candidates
// (rendezvous hashing: a server that joins or leaves changes no other server's place relative to
// the rest). An address that is not listed comes after all that are.
size_t RankOf(size_t partition, std::string_view address, const std::vector<std::string>& servers);

}  // namespace firn
