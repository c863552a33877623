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

// The limits that a process in need of memory, threads or descriptors may have met, with the names
// that ulimit(1) has for them.
std::string LimitsInForce();

// From now on an exception that ends the process because the host gives no more memory, threads or
// descriptors says so with the limits, exit 2, on whatever thread it is. Other defects abort.
void ExplainLimitsAtTheEnd();

}  // namespace firn
