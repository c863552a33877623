#pragma once

#include <optional>
#include <string>

#include "common/base/fork.h"
#include "common/id/layout.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/claim_user.h"
#include "registry/claim/keeper.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/tenure.h"
#include "registry/state/grant_file.h"

namespace firn {

struct StaticKeeperOptions {
  Layout layout = Layout::Firn();
  MachineId machine;
  bool first_start = false;  // the operator's word that this number was never used before
  bool clock_ok = false;     // his word that the wall clock is right, far from L as it may be
  bool adopt = false;        // his word that a grant file that is a copy is the only one in use
  uint64_t time_namespace = kOnlyTimeNamespace;  // as in ClaimOptions
};

// Keeps a machine id that an operator has given to this server by hand: `static:<id>`. There is no
// registry; that nobody else has the number is the operator's promise. Against this server's own
// past the grant file guards alone, so here it is durable and outlives a reboot:
//
//  1. L is written with fsync 3 s ahead, and moved on when half of that is left. Moved by more than
//     3 s, as at a start or after a pause, it is written to both records.
//  2. A start goes on at L. Within one boot the id clock goes by the grant's pair, whatever the
//     wall clock says. After a reboot there is only the wall clock, and no second one to hold it
//     against: more than a day from L it wants `clock_ok`. A missing grant file is refused, unless
//     `first_start` says that there never was one; so is one of another machine id.
//  3. A copy is refused, unless `adopt` says that it was moved on purpose and is the only one: then
//     it counts as it is, L and all. Inode and time of birth tell it; the device's number does not,
//     for an overlay, btrfs or ZFS has another one after each mount. Where the file system does not
//     tell when a file was made, nothing is issued.
//  4. A file with one damaged record: the good one may be the older, so 3 s more are left out.
//  5. The file is never removed or voided. While it cannot be written, issuing stops at L.
//  6. A clean stop writes the exact end, so that the next start loses nothing.
//
// Owned by the control thread; Tick may wait for the disk. In a forked child nothing is done.
class StaticKeeper final : public Keeper {
 public:
  // All references must outlive the keeper; `folder` has the lock.
  StaticKeeper(StaticKeeperOptions options, StateFolder& folder, ClaimUser& user,
               ClaimHooks hooks = {});

  void OnSession(const SessionEvent&) override {}

  // The first one reads the file and begins, or refuses for good: status() says why.
  void Tick(const KeeperTime& now) override;

  // Closes the user and writes the exact end. Done when it returns.
  void Release(const KeeperTime& now) override;

  ClaimState state() const override { return state_; }
  ClaimStatus status(const KeeperTime& now) const override;

 private:
  static constexpr Milliseconds kAhead{3'000};

  void Begin(KeeperTime now);
  // Where to go on, or why not; the id clock goes by the right time from then on.
  Result<WallMs> FirstMoment(KeeperTime& now);
  Status FollowClock(const GrantFile::Found& found, KeeperTime& now);
  void Push(const KeeperTime& now, firn::Tick last);
  Status Write(const Tenure& tenure, WallMs limit, const KeeperTime& now);
  Status CheckIdentity(const GrantIdentity& recorded) const;
  ClockPair PairAt(const KeeperTime& now) const {
    return {now.id_time, now.clocks.boot, options_.time_namespace};
  }
  void Refuse(std::string reason);

  const StaticKeeperOptions options_;
  ClaimUser& user_;
  const ClaimHooks hooks_;
  GrantFile grant_file_;
  ForkSentinel sentinel_;

  ClaimState state_ = ClaimState::kSeeking;
  bool refused_ = false;
  std::string reason_ = "it has just started";
  std::string grant_trouble_;  // why the grant file is not written, with its name
  std::optional<Tenure> tenure_;
  BootMs retry_at_;
};

}  // namespace firn
