#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace firn::client {

// The subset of a large cluster's servers that one client uses, by weighted rendezvous hashing.
// Every client computes a lot for each server from its own name and the server's address, and uses
// the servers with the lowest lots. Clients thus spread evenly without coordination, with few
// connections. A server that leaves is replaced by exactly one other, and one that returns gets its
// former clients back.
struct SubsetLot {
  double lot;  // divided by the weight
  uint32_t rack;
};

// Returns a lot, to be divided by the server's weight: twice the weight is chosen twice as often.
double DrawLot(uint64_t client, std::string_view address);

// Returns the indexes of at most `most` servers. If the client has a rack, three quarters of them
// are of that rack, and a quarter of other racks, in case the whole rack fails.
std::vector<size_t> ChooseSubset(std::span<const SubsetLot> servers, size_t most,
                                 std::optional<uint32_t> rack);

}  // namespace firn::client
