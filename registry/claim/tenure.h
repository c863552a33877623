#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/id/claim.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/state/grant_file.h"

namespace firn {

// Returns the cluster's time when the registry's clock shows `registry`: the same, or the floor
// plus the time since the root node was set, by that clock, if this is later. Claims decide by this
// time whether a slot is free.
WallMs ClusterTime(WallMs registry, WallMs floor, WallMs root_set_at);

// A claim as its holder knows it: what the registry acknowledged and what the grant file permits.
// A value that enforces the invariants: a violation ends the process. Owned by the control thread;
// only the Claim is shared.
class Tenure {
 public:
  // The state that the registry acknowledged.
  struct Terms {
    Slot slot;
    MachineId machine;
    Nonce nonce;
    Nonce word{};              // of the record at V
    Nonce pending_word{};      // of the writes sent from V; zero: none were
    int64_t version = 0;       // V of the slot's record
    int64_t created_zxid = 0;  // Z, the creation of the record
    int64_t meta_version = 0;  // M, under which the claim was made
    Nonce era{};               // of the registry's data; zero until they have been read
    std::string uuid;          // of the cluster
    WallMs base;               // no id below it
    WallMs bound;              // R: no id at or above it
    std::string others{};      // the record's members of later versions, to be preserved
    WallMs floor{};            // of the root node
    WallMs floor_set_at{};     // when the root node was set, by the registry's clock
    // Resumed the claim without the registry, the present process included.
    std::vector<OfflineHolder> offline{};

    // The cluster's time when the registry's clock shows `registry`.
    WallMs ClusterTimeAt(WallMs registry) const;

    // The highest permitted bound when the registry's clock shows `registry`: a day ahead of the
    // cluster's time.
    WallMs CeilingAt(WallMs registry) const;

    // Whether a record with our nonce was written by this process (or by its dead predecessor),
    // and not by a copy of it.
    bool Knows(const Nonce& of_record) const {
      return of_record == word || (!pending_word.zero() && of_record == pending_word);
    }

    // Whether this record, read at version `at`, is of this claim: its own nonce, and no copy of
    // the process wrote it. A record older than `version` has an older word; in any other record,
    // an unknown word is a copy's.
    bool Wrote(const SlotRecord& record, int64_t at) const;

    // Returns the holders since the one that this record names, if it is of this claim.
    std::vector<OfflineHolder> UnnamedBy(const SlotRecord& record, int64_t at) const {
      return Wrote(record, at) ? offline : std::vector<OfflineHolder>();
    }
  };

  Tenure(Terms terms, const Layout& layout);

  // Returns the rest of a dead process's claim, from L on.
  static Terms TermsOf(const Grant& grant);

  const Terms& terms() const { return terms_; }
  WallMs bound() const { return terms_.bound; }
  // L: the base until the first RaiseLimit.
  WallMs limit() const { return limit_; }
  const std::shared_ptr<Claim>& claim() const { return claim_; }

  // Adopts version, word, bound and other members of the record as acknowledged. Neither version
  // nor bound ever falls.
  void Renewed(int64_t version, const Nonce& word, WallMs bound, std::string others);

  // Returns the word for writes from the current version: drawn at the first call, the same until
  // the version changes. It must be in the grant file before it is sent.
  const Nonce& WordToSend(Entropy& entropy);

  // The registry's record names the present holder, and its past those before.
  void NoteNamed() { terms_.offline.clear(); }

  // Adopts era and floor of the data that show our claim under our root version.
  void LearnRoot(const Nonce& era, WallMs floor, WallMs set_at);

  // Returns the grant to write for L = `limit`.
  Grant GrantUpTo(WallMs limit, const ClockPair& clocks) const;

  // Lets the user issue below `limit`, which the grant file permits (without a grant file, `limit`
  // is R). Never falls, never exceeds R.
  void RaiseLimit(WallMs limit);

  // Returns the L to grant at `id_time` when `last` was the last tick used. It includes the tick
  // after the current one, so a call that exhausts the tick waits and is not refused. At most R.
  WallMs LimitFor(WallMs id_time, Tick last) const;

  // Returns the bound for a release: the start of the first tick that was never used.
  WallMs BoundAfter(Tick last) const;

 private:
  Terms terms_;
  WallMs limit_;
  std::shared_ptr<Claim> claim_;
};

}  // namespace firn
