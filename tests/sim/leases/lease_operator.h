#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "registry/cluster/slot.h"
#include "registry/operate/restore.h"
#include "tests/sim/leases/lease_net.h"
#include "tests/sim/leases/lease_shared.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// The operator of the registry: creates the cluster, makes backups, loses data, restores the
// cluster from the reports of running servers, and reserves and retires machine ids.
class LeaseOperator {
 public:
  // All references must outlive it.
  LeaseOperator(LeaseShared& shared, const LeaseNet::Hosts& hosts)
      : shared_(shared), hosts_(hosts) {}

  void MakeCluster(uint32_t slots, int64_t lease_share);

  bool has_backup() const { return backup_.has_value(); }
  void SaveBackup() { backup_ = shared_.tree.Save(); }
  // Replaces the registry by the backup, or wipes it.
  void LoseData();
  // Replaces the registry and freezes the cluster. No server can claim before the restore.
  void LoseAndFreeze();
  // Replaces the registry while no server runs. Before the restore, only `first` may claim.
  void PutBack(const LeaseHost& first);
  void Restore();
  // Freezes a cluster that has lost nothing.
  void Freeze();
  // Returns whether no data are lost and the cluster is not frozen.
  bool IsWhole() const;
  bool IsFrozen() const;

  // Reserves a machine id for another system, or returns a reserved one to the servers.
  void Reserve();
  void Retire();

  // Returns the number of machine ids for leases that are neither reserved nor retired.
  size_t SlotsForLeases() const;

 private:
  Slot AnySlot() const { return {0, static_cast<uint32_t>(shared_.dice.Below(slots_))}; }
  MachineId MachineOf(Slot slot) const;
  void Load(MemoryTree::Image image);
  RestoreFacts Facts() const;
  void Restore(const RestoreFacts& facts);
  void ReleaseReserved(Slot slot);

  LeaseShared& shared_;
  const LeaseNet::Hosts& hosts_;
  uint32_t slots_ = 0;
  int64_t lease_share_ = 0;
  std::string uuid_{};
  std::optional<MemoryTree::Image> backup_{};
  std::map<Slot, LeaseOracle::Holder> reserved_{};
  std::vector<Slot> retired_{};
  // The floor of the last restore, which may put ids ahead of all clocks.
  // Of the last restore. An operator specifies this floor if the registry has lost that restore.
  WallMs floor_{};
  WallMs floor_set_at_{};
  Nonce era_{};
};

}  // namespace firn
