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

// How many machine ids for leases are free in the racks from which programs request leases at this
// server, for its metrics. Reads nothing before the first request; then each slot for leases of
// these racks once a minute, and soon after a request. Owned by the control thread.
class LeaseShares {
 public:
  static constexpr Milliseconds kAfterRequest{10'000};
  static constexpr Milliseconds kEvery{60'000};
  static constexpr Milliseconds kKeep{180'000};  // readings that no newer one has replaced

  // `coordinator` must outlive it.
  LeaseShares(Coordinator& coordinator, const RackSplit& split, uint32_t own_rack);

  // A program has requested a lease from this rack, or from no rack in particular.
  void NoteRequest(std::optional<uint32_t> rack);
  // Does what is due.
  void Tick(Now now);

  // By rack; only racks in which a machine id is or was leased.
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
