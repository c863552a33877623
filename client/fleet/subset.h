#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace firn::client {

// Which servers of a large cluster a client keeps to, so that each server has as many connections
// as the next one, and few of them (weighted rendezvous hashing): every client draws a lot for each
// server out of its own name and the server's address. The lowest ones win. So clients choose
// without knowing of each other, one whose server leaves takes one other in its place, and a server
// that comes back finds those that it had.
struct SubsetLot {
  double lot;  // by weight
  uint32_t rack;
};

// To be divided by the server's weight: twice the weight wins twice as often.
double DrawLot(uint64_t client, std::string_view address);

// The places of at most `most` of them. With a rack of its own a client keeps to those of that
// rack, and for a quarter to others, in case all of the rack is lost.
std::vector<size_t> ChooseSubset(std::span<const SubsetLot> servers, size_t most,
                                 std::optional<uint32_t> rack);

}  // namespace firn::client
