#pragma once

#include "server/front/net/buffers.h"
#include "server/issue/runs.h"

namespace firn::front {

// The ids of all runs as the elements of a list<i64> stand in Thrift's binary and in its compact
// coding, behind the list's header. Straight from the runs: no list is made of them first.
void AppendBigEndian(const Runs& runs, OutBuffer& out);
void AppendVarints(const Runs& runs, OutBuffer& out);

}  // namespace firn::front
