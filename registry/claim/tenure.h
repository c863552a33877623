#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/id/claim.h"
#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"
#include "registry/state/grant_file.h"

namespace firn {

// A claim as its holder knows it: what the registry acknowledged and what the grant file permits.
// A value with the rules built in: what may not happen ends the process. Owned by the control
// thread; only the Claim is shared.
class Tenure {
 public:
  // What was acknowledged.
  struct Terms {
    Slot slot;
    MachineId machine;
    Nonce nonce;
    Nonce word{};              // that the record at V bears
    Nonce pending_word{};      // of what is, or was, sent from V; zero: nothing was
    int64_t version = 0;       // V of the slot's record
    int64_t created_zxid = 0;  // Z, which creation of it
    int64_t meta_version = 0;  // M, under which the claim was made
    Nonce era{};               // of the data it lies in; zero until the registry was looked at
    std::string uuid;          // of the cluster
    WallMs base;               // nothing below it
    WallMs bound;              // R, nothing at or above it
    std::string others{};      // what later versions have in the record, to be kept there
    WallMs floor{};            // of the root node, which was set when the registry's clock showed
    WallMs floor_set_at{};     // this

    // Where the cluster's ids are when the registry's clock shows `registry`: there, or where they
    // have come since an operator lifted the floor ahead of it. By this others count a slot as
    // free.
    WallMs ClusterTimeAt(WallMs registry) const;

    // No bound goes beyond it when the registry's clock shows `registry`: a day ahead of
    // where the cluster's ids are.
    WallMs CeilingAt(WallMs registry) const;

    // Whether a record under our nonce is this very process's (or its dead predecessor's), and not
    // that of a copy which went on by itself.
    bool Knows(const Nonce& of_record) const {
      return of_record == word || (!pending_word.zero() && of_record == pending_word);
    }
  };

  Tenure(Terms terms, const Layout& layout);

  // What a dead process's grant stands for: the rest of its claim, beginning at L.
  static Terms TermsOf(const Grant& grant);

  const Terms& terms() const { return terms_; }
  WallMs bound() const { return terms_.bound; }
  // L: the base until the first RaiseLimit.
  WallMs limit() const { return limit_; }
  const std::shared_ptr<Claim>& claim() const { return claim_; }

  // The registry says version, word and bound are these now, beside what `others` have in the
  // record. Neither version nor bound ever falls.
  void Renewed(int64_t version, const Nonce& word, WallMs bound, std::string others);

  // The word for what is sent from the present version: drawn when it is asked for first, the same
  // until the version moves. It must be on file before it is sent.
  const Nonce& WordToSend(Entropy& entropy);

  // The data that show our claim under our root version are of this era and have this floor.
  void LearnRoot(const Nonce& era, WallMs floor, WallMs set_at);

  // The grant as it stands in the file once L is `limit`.
  Grant GrantUpTo(WallMs limit, const ClockPair& clocks) const;

  // The grant file permits stamps below `limit` (or there is no file, and `limit` is R): so may the
  // user issue. Never falls, never beyond R.
  void RaiseLimit(WallMs limit);

  // The L that is wanted at `id_time` when `last` was the last tick used: the tick after the one in
  // use is granted too, so whoever has used that up waits and is not refused. Never beyond R.
  WallMs LimitFor(WallMs id_time, Tick last) const;

  // The bound that a release sets: the start of the first tick that was never used.
  WallMs BoundAfter(Tick last) const;

 private:
  Terms terms_;
  WallMs limit_;
  std::shared_ptr<Claim> claim_;
};

}  // namespace firn
