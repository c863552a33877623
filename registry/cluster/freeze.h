#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/cluster/records.h"
#include "registry/seam/async_registry.h"

namespace firn {

// A request to freeze a cluster whose data went back in time.
struct FreezeOrder {
  std::string why;  // stored in the root node for the operator
  // Whether the root node shows that the data were restored meanwhile, or are of another cluster.
  std::function<bool(const ClusterMeta&)> repaired;
};

// Returns the reason of a freeze because a tag's ledger was lost or went back.
std::string LedgerWentBack(std::string_view tag, std::string_view why);
// Returns the tag of such a reason, or nullopt for any other reason.
std::optional<std::string> TagWhoseLedgerWentBack(std::string_view reason);

// Returns the era of data that prove a loss, or nullopt if the cluster is frozen: the restore that
// froze it may repair the loss before it unfreezes it in the same era. A cluster that is being made
// counts as not frozen: its maker unfreezes it unconditionally.
std::optional<Nonce> EraToFreeze(const ClusterMeta& meta);

enum class Freeze {
  kDone,      // frozen by this request
  kNeedless,  // already frozen, restored meanwhile, or there is no cluster
  kNotYet,    // the root node was changed meanwhile, or the outcome is unknown: retry at once
};

// Tries once to freeze a cluster. After the acknowledgement no server claims a machine id or takes
// a range until an operator has restored the cluster. A failure says why the root node could not be
// read.
Task<Result<Freeze>> TryToFreeze(AsyncRegistry* registry, FreezeOrder order);

}  // namespace firn
