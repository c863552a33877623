#include "tests/sim/node/node_link.h"

#include <algorithm>

namespace firn {
namespace {

using Kind = SessionEvent::Kind;

Mutant OfTheSeam(NodeMutant mutant) {
  return mutant == NodeMutant::kNoVersionCheck ? Mutant::kNoVersionCheck : Mutant::kNone;
}

}  // namespace

NodeWire::NodeWire(MemoryTree& tree, const Clock& truth, const Clock& own, FaultPlan plan,
                   NodeMutant mutant)
    : memory_(new MemoryCoordinator(tree)),
      faulty_(std::unique_ptr<Coordinator>(memory_), truth, std::move(plan)),
      seam_(faulty_, tree, own, OfTheSeam(mutant)) {}

void NodeWire::Die() {
  if (std::exchange(dead_, true)) return;
  memory_->Abandon();
  faulty_.Orphan();
}

void NodeLink::Read(const std::string& path, ReadDone done, Changed changed) {
  if (!wire_->dead()) inner().Read(path, std::move(done), std::move(changed));
}

void NodeLink::List(const std::string& path, ListDone done, Changed changed) {
  if (!wire_->dead()) inner().List(path, std::move(done), std::move(changed));
}

void NodeLink::Sync(const std::string& path, SyncDone done) {
  if (!wire_->dead()) inner().Sync(path, std::move(done));
}

void NodeLink::Multi(std::vector<Write> writes, WriteDone done) {
  if (!wire_->dead()) inner().Multi(std::move(writes), std::move(done));
}

void NodeLink::OnSession(std::function<void(SessionEvent)> handler) {
  ++handlers_;
  const bool joins = joining();
  const NodeMutant mutant = world_.mutant;
  if (mutant != NodeMutant::kLostUnheard && mutant != NodeMutant::kBackUnheard) {
    return inner().OnSession(std::move(handler));
  }
  inner().OnSession([handler = std::move(handler), joins, mutant](SessionEvent event) {
    const Kind unheard =
        mutant == NodeMutant::kLostUnheard ? Kind::kDisconnected : Kind::kConnected;
    if (event.kind != unheard || joins != (mutant == NodeMutant::kLostUnheard)) handler(event);
  });
}

// Only a joining process waits here. A node's rounds do not wait.
int NodeLink::Dispatch(Milliseconds wait) {
  if (wire_->dead()) return 0;
  int delivered = inner().Dispatch(Milliseconds(0));
  if (joining() && delivered > 0 && wire_->faulty().connected() && world_.cuts()) {
    wire_->faulty().Disconnect();
    delivered += inner().Dispatch(Milliseconds(0));
  }
  if (delivered == 0 && wait > Milliseconds(0)) world_.pass(wait);
  return delivered;
}

}  // namespace firn
