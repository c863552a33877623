#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "common/id/rack_split.h"
#include "common/time/clock.h"
#include "registry/claim/lease_share.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "server/lease/lease_desk.h"

namespace firn {

// Counts the free machine ids for leases, for the server's metrics, in the racks from which
// programs request leases here. Reads nothing before the first request. After that it reads each
// lease slot of these racks once a minute, and shortly after a request. Owned by the control
// thread.
class LeaseShares {
 public:
  static constexpr Milliseconds kAfterRequest{10'000};
  static constexpr Milliseconds kEvery{60'000};
  static constexpr Milliseconds kKeep{180'000};  // how long the last readings remain valid

  // `coordinator` must outlive the object.
  LeaseShares(Coordinator& coordinator, const RackSplit& split, uint32_t own_rack);

  // Records that a program has requested a lease, from `rack` if it named one.
  void NoteRequest(std::optional<uint32_t> rack);
  // Starts a reading if one is due.
  void Tick(Now now);

  // Returns the counts by rack, only for racks in which a machine id is or was leased.
  std::vector<LeaseRoom> rooms() const;

 private:
  Task<> Read();
  Task<Result<LeaseShare>> ReadRack(uint32_t rack, ClusterMeta meta, WallMs set_at);

  const RackSplit split_;
  const uint32_t own_rack_;
  std::set<uint32_t> racks_;
  bool requested_ = false;
  Now now_;
  std::optional<BootMs> due_;
  std::vector<LeaseRoom> rooms_;
  BootMs read_at_;                // when rooms_ were read
  AsyncRegistry async_registry_;  // outlives the task
  Task<> task_;
};

}  // namespace firn
