#include "registry/claim/static_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/cluster/records.h"

namespace firn {
namespace {

constexpr auto kDurable = StateFolder::Durability::kDisk;
constexpr Milliseconds kRetry{1'000};
// Every grant has this nonce, because there is only one claim.
constexpr Nonce kStaticNonce(0, 1);

constexpr GrantEnd kUnwritable{.why = "the grant file on disk cannot be written", .passes = false};

}  // namespace

StaticKeeper::StaticKeeper(StaticKeeperOptions options, StateFolder& folder, ClaimUser& user,
                           ClaimHooks hooks)
    : options_(std::move(options)), user_(user), hooks_(std::move(hooks)), grant_file_(folder) {}

void StaticKeeper::Tick(const KeeperTime& now) {
  if (sentinel_.InChild() || refused_) return;
  if (state_ == ClaimState::kSeeking) return Begin(now);
  if (state_ == ClaimState::kHolding) Push(now, user_.Last());
}

void StaticKeeper::Begin(KeeperTime now) {
  if (now.clocks.boot < retry_at_) return;
  const Result<WallMs> base = FirstMoment(now);
  if (!base.ok()) return Refuse(base.status().message());
  const WallMs end = std::min(options_.layout.end(), kRecordTimeMax);
  if (*base >= end) return Refuse("the layout's time has run out");
  Tenure tenure({.slot = {},
                 .machine = options_.machine,
                 .nonce = kStaticNonce,
                 .version = 0,
                 .created_zxid = 0,
                 .meta_version = 0,
                 .uuid = {},
                 .base = *base,
                 .bound = end},
                options_.layout);
  const WallMs limit = std::min(std::max(now.id_time, *base) + kAhead, end);
  Status written = Write(tenure, limit, now);
  if (written.ok()) written = Write(tenure, limit, now);
  if (!written.ok()) {
    const bool first = grant_trouble_.empty();
    reason_ = grant_trouble_ = "the grant file cannot be written: " + written.message();
    retry_at_ = now.clocks.boot + kRetry;
    if (first && hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, reason_});
    return;
  }
  grant_trouble_.clear();
  tenure_.emplace(std::move(tenure));
  tenure_->RaiseLimit(limit);
  state_ = ClaimState::kHolding;
  reason_.clear();
  user_.Adopt(tenure_->claim());
}

Status StaticKeeper::Write(const Tenure& tenure, WallMs limit, const KeeperTime& now) {
  return grant_file_.Write(tenure.GrantUpTo(limit, PairAt(now)), kDurable);
}

Result<WallMs> StaticKeeper::FirstMoment(KeeperTime& now) {
  if (grant_file_.identity().file.born_ns == FileIdentity::kUntold) {
    return Invalid(
        "the state folder's file system has no file birth times, so a copy of the grant file "
        "cannot be detected; use another file system, such as ext4 or xfs");
  }
  const Result<GrantFile::Found> found = grant_file_.Read();
  if (found.code() == Code::kNotFound) {
    if (options_.first_start) {
      now.id_time = user_.SetIdClock(now.clocks.wall, now.clocks);
      return std::max(now.id_time, options_.layout.epoch());
    }
    return NotFound(
        "there is no grant file, so the ids used before are unknown; if this machine id was never "
        "used, set --static_first_start");
  }
  if (found.code() == Code::kCorrupt) {
    return Corrupt(found.status().message() +
                   ", so the ids used before are unknown: if no id of this machine id was ever "
                   "issued, remove the grant file and set --static_first_start; otherwise give "
                   "this server another machine id");
  }
  if (!found.ok()) return found.status();
  FIRN_TRY(CheckIdentity(found->identity));
  if (found->grant.machine != options_.machine || found->grant.nonce != kStaticNonce) {
    return Conflict(Cat("the grant file belongs to machine id ", found->grant.machine.value(),
                        ", not ", options_.machine.value()));
  }
  FIRN_TRY(FollowClock(*found, now));
  // The id clock is advanced to the first tick, so a base below it skips nothing.
  return found->grant.limit + (found->damaged ? kAhead : Milliseconds(0));
}

// No id was issued yet, so the id clock may be set.
Status StaticKeeper::FollowClock(const GrantFile::Found& found, KeeperTime& now) {
  const ClockPair& pair = found.grant.clocks;
  const bool same_boot = found.identity.boot_id == grant_file_.identity().boot_id;
  if (same_boot && pair.Tells(now.clocks.boot, options_.time_namespace)) {
    now.id_time = user_.SetIdClock(pair.TimeAt(now.clocks.boot), now.clocks);
    return {};
  }
  const WallMs wall = now.clocks.wall;
  const WallMs used = found.grant.limit;
  if (!options_.clock_ok && std::chrono::abs(wall - used) > kPoisonAhead) {
    return Conflict(Cat("the local clock (", FormatRfc3339(wall),
                        ") is more than a day from this machine id's last ids (",
                        FormatRfc3339(used),
                        "); correct the clock, or set --static_clock_ok if it is right"));
  }
  now.id_time = user_.SetIdClock(wall, now.clocks);
  return {};
}

Status StaticKeeper::CheckIdentity(const GrantIdentity& recorded) const {
  if (recorded.file.SameAcrossMounts(grant_file_.identity().file)) return {};
  if (options_.adopt) {
    if (hooks_.event) {
      hooks_.event({ClaimEvent::Kind::kInherited,
                    "accepted a copied grant file because of --static_adopt; remove the flag "
                    "before the next start"});
    }
    return {};
  }
  return Conflict(
      "the grant file is a copy, or was restored from a backup; if it was moved here on purpose, "
      "is as new as the original, and no other server uses either, set --static_adopt for one "
      "start (a copy older than the original's last use leads to duplicate ids)");
}

void StaticKeeper::Push(const KeeperTime& now, firn::Tick last) {
  const WallMs used = std::max(now.id_time, options_.layout.StartOf(last));
  if (now.clocks.boot < retry_at_ || tenure_->limit() - used > kAhead / 2) return;
  const WallMs limit = std::min(used + kAhead, tenure_->bound());
  if (limit <= tenure_->limit()) return;
  const bool wide = limit - tenure_->limit() > kAhead;
  Status written = Write(*tenure_, limit, now);
  if (written.ok() && wide) written = Write(*tenure_, limit, now);
  if (written.ok()) {
    reason_.clear();
    grant_trouble_.clear();
    return tenure_->RaiseLimit(limit);
  }
  retry_at_ = now.clocks.boot + kRetry;
  tenure_->claim()->Explain(kUnwritable);
  const bool known = !grant_trouble_.empty();
  reason_ = grant_trouble_ =
      "the grant file cannot be written, so issuing stops at its limit: " + written.message();
  if (!known && hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, grant_trouble_});
}

void StaticKeeper::Release(const KeeperTime& now) {
  if (sentinel_.InChild() || state_ == ClaimState::kReleased) return;
  const bool held = state_ == ClaimState::kHolding;
  state_ = ClaimState::kReleased;
  if (!held) return;
  const WallMs end = tenure_->BoundAfter(user_.Close());
  // Issuing has ended, so here L may fall: to just above the last id.
  Grant grant = tenure_->GrantUpTo(tenure_->limit(), PairAt(now));
  grant.limit = std::min(end, tenure_->limit());
  const Status written = grant_file_.Write(grant, kDurable);
  if (!written.ok() && hooks_.event) hooks_.event({ClaimEvent::Kind::kAlarm, written.message()});
}

void StaticKeeper::Refuse(std::string reason) {
  refused_ = true;
  reason_ = std::move(reason);
  if (hooks_.event) hooks_.event({ClaimEvent::Kind::kRefused, reason_});
}

ClaimStatus StaticKeeper::status(const KeeperTime& now) const {
  ClaimStatus shown;
  shown.state = state_;
  shown.reason = reason_;
  shown.grant_trouble = grant_trouble_;
  if (state_ != ClaimState::kHolding) return shown;
  shown.machine = options_.machine;
  shown.bound = tenure_->bound();
  shown.limit = tenure_->limit();
  shown.left = std::max(tenure_->limit() - now.id_time, Milliseconds(0));
  return shown;
}

}  // namespace firn
