#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/mailbox.h"
#include "registry/seam/synced_read.h"

namespace firn {

// What reading meta and a slot's record tells the slot's holder.
struct Finding {
  enum class Verdict {
    kNoAnswer,   // nothing is known; ask again
    kOurs,       // as we remember it, or moved on by our own late write: version() and bound count
    kForeign,    // another's nonce or creation, or unreadable: stop
    kTwin,       // our nonce, but a copy of this process has gone on with it: stop
    kMetaMoved,  // ours, but the root node has changed since, or no write of the record can be
                 // guarded: serve to R, never renew
    kLost,       // root node or record gone, another cluster's, or older than we remember
  };

  Verdict verdict = Verdict::kNoAnswer;
  std::string reason;                 // in words; empty for kOurs
  int64_t version = 0;                // of the record
  Nonce word{};                       // in the record
  WallMs bound;                       // in the record
  PastHolder holder{};                // likewise: whose claim it is, and where it began
  std::string others{};               // likewise: what later versions have in it
  std::optional<ClusterMeta> meta{};  // when it could be read
  WallMs meta_set_at;                 // by the registry's clock
};

// Pure. `held` is what the holder was last acknowledged; the reads came after a sync.
Finding Judge(const Tenure::Terms& held, const std::optional<Node>& meta,
              const std::optional<Node>& record);

// Looks after a held slot: a sync, then meta, record and `live`. Owned by the control thread.
class Inspection {
 public:
  Inspection(Coordinator& coordinator, const Tenure::Terms& held);

  // Goes on with what has arrived.
  void Tick() { mailbox_.Open(); }

  bool done() const { return done_; }
  // When done: what there is.
  const Finding& finding() const { return finding_; }
  // When done, and not kNoAnswer: whose session `live` belongs to; 0 when it is not there.
  int64_t live_session() const { return live_session_; }

 private:
  void OnNodes(const Result<Nodes>& nodes);

  const Tenure::Terms held_;
  Mailbox mailbox_;
  bool done_ = false;
  Finding finding_;
  int64_t live_session_ = 0;
};

}  // namespace firn
