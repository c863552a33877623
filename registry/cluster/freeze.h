#pragma once

#include <functional>
#include <string>

#include "common/base/status.h"
#include "registry/cluster/records.h"
#include "registry/seam/talk.h"

namespace firn {

// Why a cluster is to be frozen: its data went back in time.
struct FreezeOrder {
  std::string why;  // stands in the root node, for the operator
  // Whether the root node shows data that were restored since, or others than those.
  std::function<bool(const ClusterMeta&)> mended;
};

enum class Freeze {
  kDone,      // by this order
  kNeedless,  // somebody else has done it, or it is mended, or there is no cluster
  kNotYet,    // somebody else has changed the root node, or nobody knows: it may be tried at once
};

// Tries once to freeze a cluster: from the moment it is acknowledged nobody claims a machine id or
// takes a range until an operator has restored it. A failure says why the root node could not be
// read. While a cluster is being made it counts as not frozen: its maker thaws it without a look.
Task<Result<Freeze>> TryToFreeze(Talk* talk, FreezeOrder order);

}  // namespace firn
