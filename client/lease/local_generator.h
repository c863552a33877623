#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "client/lease/lease_options.h"
#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

class LeaseTransport;

// Makes ids in this process, under a leased machine id that no other process has at the same time.
//
// It issues from memory, also while no server is reachable, until the lease's interval ends. A
// thread extends the lease, and obtains the next one when a server does not extend it. Ids rise,
// also across leases.
//
// Thread-safe. A child of fork() gets no ids from the object that it inherits; it may destroy it,
// and create another one.
//
// Sharp edge: a copy of the whole running process (a snapshot of a virtual machine that is resumed
// twice) is detected at the next renewal. Ids that both copies issued until then are duplicated.
class LocalGenerator {
 public:
  // Never fails and does not wait: until there is a lease, calls fail with the reason.
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

  // The same, but fails instead of waiting.
  Result<int64_t> TryNext();

  // Waits until there is a lease, at most `patience`; returns the last reason why there is none.
  Status AwaitLease(Milliseconds patience);

  // Returns the machine id of the current lease.
  std::optional<MachineId> machine_id() const;

  // Returns the time in ids at which the current lease ends, unless a server extends it.
  std::optional<WallMs> until() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace firn
