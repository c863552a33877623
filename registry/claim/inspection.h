#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "registry/state/kept_bounds.h"

namespace firn {

// A holder's conclusion from reading the root node and its slot's record.
struct Finding {
  enum class Verdict {
    kNoAnswer,   // the reads failed; retry
    kOurs,       // as remembered, or changed by our own late write: adopt version and bound
    kForeign,    // a different nonce or creation, or unreadable: stop
    kTwin,       // our nonce with an unknown word, so a copy of this process renewed it: stop
    kMetaMoved,  // ours, but the root node has a newer version, or no write of the record can be
                 // guarded: issue until R, never renew
    kRestored,   // the record or the root node was re-created or went back, and a restore has set
                 // the floor at or above our bound since, so no other claim can overlap ours: issue
                 // until R, never renew or inherit
    kLost,       // root node or record missing, of another cluster, or older than remembered
  };

  Verdict verdict = Verdict::kNoAnswer;
  std::string reason{};  // as a sentence; empty for kOurs
  int64_t version = 0;   // of the record
  SlotRecord record{};   // if record_read
  bool record_read = false;
  std::optional<ClusterMeta> meta{};  // if it could be read
  int64_t meta_version = 0;
  WallMs meta_set_at{};      // by the registry's clock
  int64_t live_session = 0;  // the session that owns `live`; 0: there is no `live`
};

// Pure. `held` is the state acknowledged last; the reads must follow a sync.
Finding Judge(const Tenure::Terms& held, const std::optional<Node>& meta,
              const std::optional<Node>& record);

// Checks a held slot: a sync, then reads of the root node, the record and `live`.
Task<Finding> Inspect(AsyncRegistry* registry, Tenure::Terms held);

// How the registry contradicts one kept bound, as a sentence; empty: it does not. With its claim
// and version, a bound may have fallen if the slot's record or its past shows that the claim ended
// at that version or later: the server's folder is older, or a copy of it released the slot. A slot
// that another claim took below the bound is a loss otherwise, however far that claim has come.
// kUnavailable: the registry did not answer.
Task<Result<std::string>> FindKeptFault(AsyncRegistry* registry, KeptBound kept, bool same_era);

// How the registry contradicts a kept bound that `passed` has not reached, as a sentence; empty: it
// does not. A bound that has passed does not matter: no program issues at or above it.
// kUnavailable: the registry did not answer. `root` has the era and the floor of the root node,
// read in the same connection.
Task<Result<std::string>> FindLostBound(AsyncRegistry* registry, KeptBounds kept,
                                        Tenure::Terms root, WallMs passed);

// Freezes a cluster whose data went back in time, so that no server can claim, and then reads the
// holder's slot: a claim made before the freeze is visible there. Ok: no other nonce is in the
// slot, and the cluster is frozen, was restored meanwhile, or is missing. kConflict: another nonce
// is in the slot. Any other code: the outcome is unknown.
//
// A missing cluster cannot be frozen and need not be. A floor at or above the holder's bound shows
// that the cluster was restored meanwhile: new claims begin above every time that the holder uses.
// `why` is stored in the root node for the operator.
inline constexpr int kFreezeTriesMax = 4;
Task<Status> FreezeAndInspect(AsyncRegistry* registry, Tenure::Terms held, std::string why);

}  // namespace firn
