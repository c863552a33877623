#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "client/lease/lease_options.h"
#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

class LeaseTransport;

// Issues ids in this process, under a leased machine id that no other process holds at the same
// time.
//
// It issues ids from memory until the lease's interval ends, even while no server is reachable. A
// thread extends the lease, and obtains the next one if the server no longer extends it. Ids rise,
// also across leases.
//
// Thread-safe. In a child of fork(), the inherited object issues no ids. The child may destroy it
// and create another one.
//
// Sharp edge: a copy of the whole running process (a snapshot of a virtual machine that is resumed
// twice) is detected at the next renewal. Ids that both copies issued until then are duplicated.
class LocalGenerator {
 public:
  // Never fails and does not wait. Until there is a lease, calls fail with the reason.
  LocalGenerator(LeaseOptions options, std::shared_ptr<LeaseTransport> transport);

  // Stops the generator and tells the server which ids were used, for at most `kStopPatience`. No
  // other thread may be in a call.
  ~LocalGenerator();
  LocalGenerator(const LocalGenerator&) = delete;
  LocalGenerator& operator=(const LocalGenerator&) = delete;

  static constexpr Milliseconds kStopPatience{1'000};

  // Returns the next id. If this tick's sequence is used up, waits until the next tick.
  // kUnavailable: there is no lease, or its interval has ended.
  Result<int64_t> Next();

  // Returns the next id, or kUnavailable where Next would wait.
  Result<int64_t> TryNext();

  // Waits until there is a lease, at most `patience`. If there is none, returns the reason of the
  // last failure.
  Status AwaitLease(Milliseconds patience);

  // Returns the machine id of the current lease.
  std::optional<MachineId> machine_id() const;

  // Returns the end of the current lease, in the time of ids. A server may still extend it.
  std::optional<WallMs> until() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace firn
