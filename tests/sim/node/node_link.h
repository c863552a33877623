#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/sim/mutants.h"
#include "tests/sim/node/node_mutants.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// A process's connection to the registry. It outlives the process: requests may still arrive.
class NodeWire {
 public:
  // References must outlive it.
  NodeWire(MemoryTree& tree, const Clock& truth, const Clock& own, FaultPlan plan,
           NodeMutant mutant);

  // Records that the process has died: it no longer sends or receives anything. Its session
  // remains.
  void Die();
  bool dead() const { return dead_; }

  FaultyCoordinator& faulty() { return faulty_; }

 private:
  friend class NodeLink;

  MemoryCoordinator* memory_;  // in faulty_
  FaultyCoordinator faulty_;
  SeamCoordinator seam_;
  bool dead_ = false;
};

// The process's end of a NodeWire. The joiner sets its first event handler, the node the second.
class NodeLink final : public ForwardingCoordinator {
 public:
  // `pass` lets time pass while a caller waits. While the process joins the cluster, `cuts` decides
  // after each answer whether the connection is lost in the same batch.
  struct World {
    std::function<void(Milliseconds)> pass;
    std::function<bool()> cuts;
    NodeMutant mutant;
  };

  NodeLink(std::shared_ptr<NodeWire> wire, World world)
      : ForwardingCoordinator(static_cast<Coordinator&>(wire->seam_)),
        wire_(std::move(wire)),
        world_(std::move(world)) {}

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int Dispatch(Milliseconds wait) override;

 private:
  bool joining() const { return handlers_ < 2; }

  const std::shared_ptr<NodeWire> wire_;
  const World world_;
  int handlers_ = 0;
};

}  // namespace firn
