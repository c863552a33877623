#include "client/fleet/subset.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "common/base/fnv.h"
#include "common/time/entropy.h"

namespace firn::client {

double DrawLot(uint64_t client, std::string_view address) {
  const uint64_t bits = SeededEntropy(Fnv1a(address, kFnvSeed ^ client)).Next();
  const double drawn = (static_cast<double>(bits >> 11) + 1) * 0x1p-53;
  return -std::log(drawn);
}

std::vector<size_t> ChooseSubset(std::span<const SubsetLot> servers, size_t most,
                                 std::optional<uint32_t> rack) {
  constexpr size_t kElsewhereShare = 4;
  std::vector<size_t> places(servers.size());
  std::iota(places.begin(), places.end(), size_t{0});
  if (places.size() <= most) return places;
  std::ranges::sort(places, {}, [&](size_t at) { return servers[at].lot; });
  if (rack) {
    const auto elsewhere = std::stable_partition(
        places.begin(), places.end(), [&](size_t at) { return servers[at].rack == *rack; });
    const auto others = static_cast<size_t>(places.end() - elsewhere);
    const size_t own = most - std::min(most / kElsewhereShare, others);
    if (places.size() - others > own) {
      places.erase(places.begin() + static_cast<ptrdiff_t>(own), elsewhere);
    }
  }
  places.resize(most);
  return places;
}

}  // namespace firn::client
