#pragma once

#include "server/front/net/buffers.h"
#include "server/issue/runs.h"

namespace firn::front {

// Append the ids of all runs as the elements of a list<i64> in Thrift's binary and compact coding,
// without the list's header. They encode the runs directly, without a list in memory.
void AppendBigEndian(const Runs& runs, OutBuffer& out);
void AppendVarints(const Runs& runs, OutBuffer& out);

}  // namespace firn::front
