#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "server/front/net/limits.h"

namespace firn {

// The host's limits on this process. Called by main, before other threads are created.

// Raises the descriptor limit to what the permitted connections need, if the host allows it;
// otherwise logs a warning. kInvalid, naming the limit, if even a server without connections could
// not run with it.
Status AllowDescriptors(const front::Limits& limits);

// Makes the allocator return freed memory of connections' large buffers to the host.
void ReturnFreedMemory();

// Returns what is left of many connections to the host once they have closed: small blocks, which
// the allocator keeps otherwise. Thread-compatible.
class FreedInBulk {
 public:
  // To be called a few times a second, with about how many bytes the connections hold.
  void Observe(size_t held, BootMs now);

 private:
  size_t most_ = 0;  // since memory was returned last
  BootMs not_before_;
};

// Returns the limits that a process may have reached if it lacks memory, threads or descriptors, by
// their names in ulimit(1).
std::string LimitsInForce();

// From now on, an exception that ends the process because the host denies memory, threads or
// descriptors prints the limits, on any thread. It exits with 1, so that a service manager restarts
// the server: the shortage may pass. Other faults abort.
void ExplainLimitsAtTheEnd();

// Must be called when the start has succeeded. Throws std::bad_alloc if too little memory is left
// for calls.
void RequireSpareMemory();

}  // namespace firn
