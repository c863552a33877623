#include "registry/owners/candidates.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/fnv.h"

namespace firn {
namespace {

// The last step of MurmurHash3: every bit of the hash depends on all of them.
uint64_t Mixed(uint64_t hash) {
  hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccd;
  hash = (hash ^ (hash >> 33)) * 0xc4ceb9fe1a85ec53;
  return hash ^ (hash >> 33);
}

}  // namespace

size_t PartitionOf(std::string_view tag) { return Mixed(Fnv1a(tag)) % kPartitions; }

size_t RankOf(size_t partition, std::string_view address, const std::vector<std::string>& servers) {
  if (std::find(servers.begin(), servers.end(), address) == servers.end()) return servers.size();
  const auto place = [partition](std::string_view server) {
    return std::pair(Mixed(Fnv1a(server) + partition), server);
  };
  return static_cast<size_t>(
      std::count_if(servers.begin(), servers.end(),
                    [&](const std::string& server) { return place(server) > place(address); }));
}

}  // namespace firn
