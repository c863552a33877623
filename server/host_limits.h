#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "server/front/net/limits.h"

namespace firn {

// The host's limits on this process. Called by main, before other threads are created.

// Raises the limit of open files to what the permitted connections need. Logs a warning if the host
// does not allow that. kInvalid, naming the limit, if not even a server without connections could
// run.
Status AllowDescriptors(const front::Limits& limits);

// Makes the allocator return freed memory of connections' large buffers to the host.
void ReturnFreedMemory();

// Returns memory to the host after many connections have closed: small blocks, which the allocator
// would keep. Thread-compatible.
class FreedInBulk {
 public:
  // Call a few times a second. `held`: about how many bytes the connections hold.
  void Observe(size_t held, BootMs now);

 private:
  size_t most_ = 0;  // since memory was last returned
  BootMs not_before_;
};

// Lists the limits that a process without memory, threads or descriptors may have reached, with
// their options of ulimit(1).
std::string LimitsInForce();

// From now on, an exception that ends the process because the host denies memory, threads or
// descriptors prints the limits. The process then exits with 1, so that a service manager restarts
// it: the shortage may pass. Other exceptions abort.
void ExplainLimitsAtTheEnd();

// Call after the start has succeeded. Throws std::bad_alloc if too little memory is left for calls.
void RequireSpareMemory();

}  // namespace firn
