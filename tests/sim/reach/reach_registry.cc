#include "tests/sim/reach/reach_registry.h"

#include <algorithm>
#include <utility>

#include "registry/servers/server_roll.h"

namespace firn {
namespace {

constexpr Micros kReadEvery{ServerRoll::kReadEvery};
constexpr uint64_t kMarks = 2;  // marks of the two folders

}  // namespace

Listed::Listed(Micros since_when, std::vector<uint32_t> which)
    : since(since_when),
      servers(std::move(which)),
      lots(std::vector<double>(servers.size(), 100.0)) {}

ReachRegistry::ReachRegistry(size_t servers) {
  for (size_t i = 0; i < servers; ++i) {
    look_at_.push_back(kReadEvery * static_cast<int64_t>(i) / static_cast<int64_t>(servers));
  }
}

void ReachRegistry::Change(Micros now, std::vector<uint32_t> servers) {
  lists_.push_back(std::make_unique<const Listed>(now, std::move(servers)));
}

Micros ReachRegistry::LookedAt(uint32_t server, Micros now) const {
  return (now - look_at_[server]) / kReadEvery * kReadEvery + look_at_[server];
}

int64_t ReachRegistry::VersionAt(uint32_t server, Micros now) const {
  const Micros looked = LookedAt(server, now);
  const auto later = [](Micros at, const auto& list) { return at < list->since; };
  return std::upper_bound(lists_.begin(), lists_.end(), looked, later) - lists_.begin();
}

// A server reads the marks. If they have changed, it reads both folders with all their nodes, the
// marks before each folder, and the marks once more.
uint64_t ReachRegistry::ReadsOf(uint32_t server, Micros now) const {
  const int64_t before = VersionAt(server, now), after = VersionAt(server, now + kReadEvery);
  if (after == before || after == 0) return kMarks;
  const uint64_t folders = 2;
  return kMarks + kMarks + folders + List(after).servers.size() + kMarks;
}

}  // namespace firn
