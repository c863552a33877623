#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/mailbox.h"

namespace firn {

// One node for each path asked for, in order; nothing where there is no such node.
using Nodes = std::vector<std::optional<Node>>;

// Reads nodes as they are after a sync: everything that was acknowledged to anybody before the call
// is in them. All or nothing: when the sync or one read goes unanswered, `done` gets that failure.
// The same when the session has ended by then: so what `done` writes at once is written in the
// session that it read in. `done` runs in the mailbox's Open; never, when the mailbox is gone.
void ReadSynced(Coordinator& coordinator, Mailbox& mailbox, const std::vector<std::string>& paths,
                std::function<void(Result<Nodes>)> done);

}  // namespace firn
