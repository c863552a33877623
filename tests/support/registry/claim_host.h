#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "registry/claim/claim_keeper.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/registry/memory_state_folder.h"
#include "tests/support/sequenced_user.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A process that holds a claim in a registry in memory, driven step by step. The disk outlives it.
// Destroying it is kill -9: the session remains until the test expires it.
class ClaimHost {
 public:
  ClaimHost(MemoryTree& tree, const VirtualClock& clock, MemoryDisk& disk, ClaimOptions options,
            uint64_t seed, IdClockOptions id_clock = {})
      : clock_(clock), folder_(disk), entropy_(seed), user_(clock, {}, seed, id_clock) {
    auto inner = std::make_unique<MemoryCoordinator>(tree);
    inner_ = inner.get();
    link_ = std::make_unique<FaultyCoordinator>(std::move(inner), clock);
    ClaimHooks hooks;
    hooks.event = [this](const ClaimEvent& event) { events_.push_back(event); };
    hooks.registry_clock = [this](WallMs registry, Now now) { clock_lead_ = now.wall - registry; };
    keeper_ = std::make_unique<ClaimKeeper>(std::move(options), *link_, folder_, user_, entropy_,
                                            std::move(hooks));
    link_->OnSession([this](SessionEvent event) { keeper_->OnSession(event); });
  }
  ~ClaimHost() { inner_->Abandon(); }

  // Runs one round of the control loop.
  void Step() {
    link_->Dispatch(Milliseconds(0));
    keeper_->Tick(Time());
  }

  KeeperTime Time() { return {clock_.Read(), user_.Time()}; }
  ClaimStatus status() { return keeper_->status(Time()); }

  ClaimKeeper& keeper() { return *keeper_; }
  FaultyCoordinator& link() { return *link_; }
  SequencedUser& user() { return user_; }
  int64_t session() const { return inner_->session(); }
  // How far the wall clock was ahead of the registry's at the last reading.
  Milliseconds clock_lead() const { return clock_lead_; }
  const std::vector<ClaimEvent>& events() const { return events_; }
  bool Told(ClaimEvent::Kind kind) const {
    for (const ClaimEvent& event : events_) {
      if (event.kind == kind) return true;
    }
    return false;
  }

 private:
  const VirtualClock& clock_;
  MemoryStateFolder folder_;
  SeededEntropy entropy_;
  SequencedUser user_;
  MemoryCoordinator* inner_ = nullptr;
  std::unique_ptr<FaultyCoordinator> link_;
  std::unique_ptr<ClaimKeeper> keeper_;
  std::vector<ClaimEvent> events_;
  Milliseconds clock_lead_{0};
};

}  // namespace firn
