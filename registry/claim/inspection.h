#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"

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
    kRestored,   // a restore put the floor at or above our bound and made the record anew, so that
                 // nobody can share our times: serve to R, never renew or inherit
    kLost,       // root node or record gone, another cluster's, or older than we remember
  };

  Verdict verdict = Verdict::kNoAnswer;
  std::string reason{};  // in words; empty for kOurs
  int64_t version = 0;   // of the record
  SlotRecord record{};   // when it could be read
  bool record_read = false;
  std::optional<ClusterMeta> meta{};  // when it could be read
  WallMs meta_set_at{};               // by the registry's clock
  int64_t live_session = 0;           // whose `live` is there; 0: nobody's
};

// Pure. `held` is what the holder was last acknowledged; the reads came after a sync.
Finding Judge(const Tenure::Terms& held, const std::optional<Node>& meta,
              const std::optional<Node>& record);

// Looks after a held slot: a sync, then meta, record and `live`.
Task<Finding> Inspect(Talk* talk, Tenure::Terms held);

// Stops all new claims of a cluster whose data went back in time, then looks at the holder's slot:
// from then on nobody can come in whom the holder does not see. Ok: frozen, or restored since, or
// not there, and nobody else's nonce is in the slot. kConflict: somebody else's is. Otherwise it
// was not acknowledged.
//
// A cluster that is not there cannot be frozen and need not be. One whose floor already lies at or
// above the holder's bound has been restored since: nobody can claim what the holder still uses.
// `why` stands in the cluster's root node for the operator.
inline constexpr int kFreezeTriesMax = 4;
Task<Status> FreezeAndLook(Talk* talk, Tenure::Terms held, std::string why);

}  // namespace firn
