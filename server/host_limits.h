#pragma once

#include <string>

#include "common/base/status.h"
#include "server/front/net/limits.h"

namespace firn {

// What the host lets this process have. Called by main, before other threads are made.

// Allows as many descriptors as the connections need that are to be let in, where the host permits
// it; with fewer the log says so. kInvalid, naming the limit, when not even a server without
// connections could live with them.
Status AllowDescriptors(const front::Limits& limits);

// Makes the allocator return freed memory of connections' buffers to the host.
void ReturnFreedMemory();

// The limits that a process in need of memory, threads or descriptors may have met, with the names
// that ulimit(1) has for them.
std::string LimitsInForce();

// From now on, an exception that ends the process because the host denies memory, threads or
// descriptors prints the limits, on any thread. It exits with 2, invalid usage, until NoteServing is
// called, and with 1 afterwards, so that a service manager restarts the server. Other faults abort.
void ExplainLimitsAtTheEnd();

// The start has succeeded.
void NoteServing();

}  // namespace firn
