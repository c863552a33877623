// A registry that returns empty, and an operator who assumes that no cluster existed.

#include <algorithm>
#include <vector>

#include "tests/sim/world.h"

namespace firn {
namespace {

// Time for which `firn init` waits for servers of a lost cluster.
constexpr Milliseconds kInitWaits{20'000};
// Servers read the registry within this time after it is reachable (registry/zk).
constexpr int64_t kLooksWithinMs = 10'000;
constexpr int64_t kSessionMs = 10'000;

}  // namespace

// Returns whether all hosts can read the registry. A host that is paused or disconnected does not
// register, so the operator would have to know of it.
bool SimWorld::AllCanLook() const {
  return asleep_.empty() && std::all_of(hosts_.begin(), hosts_.end(), [](const auto& host) {
           return host->can_look() && !host->in_doubt();
         });
}

bool SimWorld::AnyoneAnnounces() {
  const BootMs begin = clock_.Boot();
  const bool late = shared_.mutant == Mutant::kLooksLate;
  std::vector<BootMs> looks;
  for (size_t i = 0; i < hosts_.size(); ++i) {
    const Milliseconds after = Milliseconds(late ? 2 * kSessionMs : 2'000);
    looks.push_back(begin + after + UpTo(late ? kSessionMs : kLooksWithinMs - 2'000));
  }
  bool announced = false;
  while (clock_.Boot() < begin + kInitWaits) {
    clock_.Advance(Milliseconds(1) + UpTo(300));
    ExpireSessions();
    for (size_t i = 0; i < hosts_.size(); ++i) {
      SimHost& host = *hosts_[i];
      ++steps_;
      if (!host.connected() && looks[i] <= clock_.Boot()) host.Reconnect();
      host.RunGhost();
      host.Step();
      host.Issue(1 + dice_.Below(3));
      // The operator is assumed to know of a server that has died.
      announced |= host.connected() || !host.running();
    }
  }
  return announced;
}

void SimWorld::LoseAndInit() {
  if (!AllCanLook() || !operator_.LoseAndInit([this] { return AnyoneAnnounces(); })) return;
  // The first server of the new cluster is a new machine.
  const int index = static_cast<int>(hosts_.size() + copies_.size());
  hosts_.push_back(
      std::make_unique<SimHost>(shared_, 100 + index, NewOptions(100 + index), SequencerOptions{}));
  hosts_.back()->Start(true);
}

}  // namespace firn
