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
  bool first_start = false;  // the operator confirms that this machine id was never used
  bool clock_ok = false;     // the operator confirms the wall clock, however far it is from L
  bool adopt = false;        // the operator confirms that a copied grant file is the only one used
  uint64_t time_namespace = kOnlyTimeNamespace;  // as in ClaimOptions
};

// Holds a machine id that an operator assigned to this server: `static:<id>`. There is no registry:
// the operator guarantees that no other server has the id. Only the grant file protects against the
// server's own earlier runs, so it is durable and outlives a reboot:
//
//  1. L is written with fsync 3 s ahead, and raised when half of that is left. If it is raised by
//     more than 3 s, as at a start or after a pause, it is written to both records.
//  2. A start resumes at L. Within one boot the id clock follows the grant's clock pair and ignores
//     the wall clock. After a reboot only the wall clock is available: if it is more than a day
//     from L, `clock_ok` is required. A missing grant file is refused unless `first_start` is set;
//     a grant file of another machine id is refused.
//  3. A copied grant file is refused unless `adopt` confirms that it was moved on purpose and is
//     the only one; then its contents are used. Inode and birth time identify a copy. The device
//     number does not: an overlay, btrfs or ZFS gets another one at each mount. On a file system
//     without birth times nothing is issued.
//  4. If one record is damaged, the good one may be the older, so 3 s more are skipped.
//  5. The file is never removed or voided. While it cannot be written, issuing stops at L.
//  6. A clean stop writes the exact end, so that the next start skips nothing.
//
// Owned by the control thread; Tick may wait for the disk. Does nothing in a forked child.
class StaticKeeper final : public Keeper {
 public:
  // All references must outlive the keeper; `folder` must hold the lock.
  StaticKeeper(StaticKeeperOptions options, StateFolder& folder, ClaimUser& user,
               ClaimHooks hooks = {});

  void OnSession(const SessionEvent&) override {}

  // The first call reads the grant file and starts, or refuses permanently: status() says why.
  void Tick(const KeeperTime& now) override;

  // Closes the user and writes the exact end, synchronously.
  void Release(const KeeperTime& now) override;

  ClaimState state() const override { return state_; }
  bool checked() const override { return false; }
  ClaimStatus status(const KeeperTime& now) const override;

 private:
  static constexpr Milliseconds kAhead{3'000};

  void Begin(KeeperTime now);
  // Returns the first time to use, or why there is none. Sets the id clock to the right time.
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
