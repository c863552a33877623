#pragma once

#include <functional>
#include <string>

#include "registry/cluster/records.h"
#include "registry/seam/talk.h"

namespace firn {

// What has come of one try to freeze a cluster.
enum class Freezing {
  kFrozen,      // acknowledged: nobody claims a machine id or takes a range until a restore
  kSettled,     // need not be: there is no root node, or it stands as it should
  kAgain,       // the root node was changed meanwhile, or nobody knows: to be tried again
  kUnanswered,  // nothing was done
  kUnreadable,  // the root node cannot be read
};

struct FreezeTried {
  Freezing outcome;
  std::string reason{};  // where nothing was done
};

// Tries once to stop all new claims and ranges of a cluster whose data went back in time. `settled`
// tells root nodes that need it no more; `why` stands in the root node for the operator.
Task<FreezeTried> TryToFreeze(Talk* talk, std::function<bool(const ClusterMeta&)> settled,
                              std::string why);

}  // namespace firn
