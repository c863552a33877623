#pragma once

#include <optional>
#include <string>

#include "common/fork_cells.h"
#include "common/layout.h"
#include "registry/claim/claim_status.h"
#include "registry/claim/claim_user.h"
#include "registry/claim/grant_file.h"
#include "registry/claim/keeper.h"
#include "registry/claim/keeper_time.h"
#include "registry/claim/tenure.h"

namespace firn {

struct StaticKeeperOptions {
  Layout layout = Layout::Firn();
  MachineId machine;
  bool first_start = false;  // the operator's word that this number was never used before
};

// Keeps a machine id that an operator has given to this server by hand: `static:<id>`. There is no
// registry; that nobody else has the number is the operator's promise. Against this server's own
// past the grant file guards alone, so here it is durable and outlives a reboot:
//
//  1. L is written with fsync 3 s ahead, and moved on when half of that is left. Moved by more than
//     3 s, as at a start or after a pause, it is written to both records.
//  2. A start goes on at L, whatever the clock says. A missing grant file is refused, unless
//     `first_start` says that there never was one; so is one of another machine id, and a copy.
//  3. A file with one damaged record: the good one may be the older, so 3 s more are left out.
//     Where the file system does not tell when a file was made, nothing is issued: a copy could not
//     be told from the original.
//  4. The file is never removed or voided. While it cannot be written, issuing stops at L.
//  5. A clean stop writes the exact end, so that the next start loses nothing.
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

  void Begin(const KeeperTime& now);
  // Where to go on, or why not.
  Result<WallMs> FirstMoment(const KeeperTime& now);
  void Push(const KeeperTime& now, firn::Tick last);
  Status Write(const Tenure& tenure, WallMs limit);
  void Refuse(std::string reason);

  const StaticKeeperOptions options_;
  ClaimUser& user_;
  const ClaimHooks hooks_;
  GrantFile grant_file_;
  ForkSentinel sentinel_;

  ClaimState state_ = ClaimState::kSeeking;
  bool refused_ = false;
  std::string reason_ = "it has just started";
  std::optional<Tenure> tenure_;
  BootMs retry_at_;
};

}  // namespace firn
