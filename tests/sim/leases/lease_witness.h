#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "registry/cluster/records.h"
#include "tests/sim/leases/lease_shared.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Observes a server's requests when they arrive at the registry. Checks that the registry is frozen
// only if it has lost data or the server was copied, and that no retired machine id is claimed.
//
// After a loss of data, and until the cluster is frozen or restored, the ticks of a claim below the
// highest bound that its slot ever had may be duplicated, because the lost data may have contained
// another claim. The witness refuses renewals of a holder whose successor the registry has lost.
// The first server that starts on an older registry must detect the loss of its own leases.
class LeaseWitness final : public ForwardingCoordinator {
 public:
  // References must outlive it. `promised`: the bounds of leases that should be on the server's
  // disk.
  LeaseWitness(LeaseShared& shared, std::string address, const std::string& promised,
               std::unique_ptr<MemoryCoordinator> inner)
      : ForwardingCoordinator(*inner),
        shared_(shared),
        address_(std::move(address)),
        promised_(promised),
        inner_(std::move(inner)) {}

  MemoryCoordinator& inner() { return *inner_; }

  void Multi(std::vector<Write> writes, WriteDone done) override;

 private:
  void NoteApplied(const std::string& path, const SlotRecord& record);
  void NoteGapClaim(const std::string& path, const SlotRecord& record);
  bool IsInGap() const;
  bool IsUnpromised(const std::string& path, const SlotRecord& record) const;
  bool HasPromised(const std::string& path) const;

  LeaseShared& shared_;
  const std::string address_;
  const std::string& promised_;
  const std::unique_ptr<MemoryCoordinator> inner_;
};

}  // namespace firn
