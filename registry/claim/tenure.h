#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/claim.h"
#include "common/layout.h"
#include "registry/claim/grant_file.h"
#include "registry/nonce.h"
#include "registry/slot.h"

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
    int64_t version = 0;       // V of the slot's record
    int64_t created_zxid = 0;  // Z, which creation of it
    int64_t meta_version = 0;  // M, under which the claim was made
    Nonce era{};               // of the data it lies in; zero until the registry was looked at
    std::string uuid;          // of the cluster
    WallMs base;               // nothing below it
    WallMs bound;              // R, nothing at or above it
  };

  Tenure(Terms terms, const Layout& layout);

  // What a dead process's grant stands for: the rest of its claim, beginning at L.
  static Terms TermsOf(const Grant& grant);

  const Terms& terms() const { return terms_; }
  WallMs bound() const { return terms_.bound; }
  // L: the base until the first RaiseLimit.
  WallMs limit() const { return limit_; }
  const std::shared_ptr<Claim>& claim() const { return claim_; }

  // The registry says version and bound are these now. Neither ever falls.
  void Renewed(int64_t version, WallMs bound);

  // The data that show our claim under our root version are of this era.
  void LearnEra(const Nonce& era) { terms_.era = era; }

  // The grant as it stands in the file once L is `limit`.
  Grant GrantUpTo(WallMs limit) const;

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
