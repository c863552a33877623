#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "server/lease/lease_id.h"
#include "server/lease/lease_table.h"

// Leases across a restart of their server (rule 12): a stop stores them, and the next process
// resumes them.

namespace firn {
namespace {

constexpr Milliseconds kResumeAgain{500};

}  // namespace

// --- a stop --------------------------------------------------------------------------------------

void LeaseTable::Stop(BootMs until) {
  if (stop_until_) return;
  stop_until_ = until;
  for (const auto& [id, lease] : leases_) {
    for (const Waiting& one : std::exchange(lease->waiting, {})) {
      Refuse(LeaseVerdict::kLater, kStopping, one.done);
    }
    if (lease->granted) KeepForNext(*lease);
  }
}

// Stores the lease with its last turn, and lowers the stored bound to the promised end. The bound
// of a claim that is ending is not lowered: the registry does not permit it, and the next process
// may extend the lease up to it.
void LeaseTable::KeepForNext(Lease& lease) {
  if (!lease.revoked.empty() || lease.claim->state() != LeaseClaim::State::kHeld) return;
  const bool ending = lease.claim->ending();
  lease.lowered |= !ending;
  lease.kept = KeptText(lease, true);
  const WallMs bound = ending ? lease.tenure().bound() : layout().StartOf(lease.promised);
  bounds_.Keep(lease.tenure().terms().uuid, BoundOf(lease, bound, lease.kept));
}

bool LeaseTable::stopped() const {
  const auto is_open = [](const LeaseClaim& claim) {
    return claim.state() == LeaseClaim::State::kReleasing ||
           (claim.state() == LeaseClaim::State::kHeld && !claim.ending());
  };
  return std::none_of(leases_.begin(), leases_.end(),
                      [&](const auto& one) {
                        return one.second->granted && one.second->revoked.empty() &&
                               is_open(*one.second->claim);
                      }) &&
         std::none_of(ended_.begin(), ended_.end(),
                      [&](const Ended& one) { return is_open(*one.claim); }) &&
         bounds_.written();
}

// Lowers the bound in the registry once the lower one is on disk. Returns false until that is done.
bool LeaseTable::Suspend(Lease& lease) {
  LeaseClaim& claim = *lease.claim;
  KeepForNext(lease);  // it may have been granted, resumed or ended since the stop began
  if (claim.state() != LeaseClaim::State::kHeld || claim.ending()) return true;
  const WallMs promised = layout().StartOf(lease.promised);
  if (!bounds_.MayLower(lease.tenure().terms().slot, promised, lease.kept)) return false;
  claim.Suspend(promised, *stop_until_);
  return true;
}

// Abandons all leases and claims: the original machine may extend and release the leases, and
// obtain the claims under way.
void LeaseTable::LeaveToOriginal() {
  earlier_.clear();
  ended_.clear();
  for (const auto& [id, lease] : leases_) {
    lease->claim->Abandon("this server's machine was copied, or put back to a snapshot");
  }
}

KeptBound LeaseTable::BoundOf(const Lease& lease, WallMs bound, std::string kept) {
  const Tenure::Terms& terms = lease.tenure().terms();
  return {.slot = terms.slot,
          .era = terms.era,
          .created_zxid = terms.created_zxid,
          .bound = bound,
          .claim = terms.nonce,
          .version = terms.version,
          .lease = std::move(kept)};
}

std::string LeaseTable::KeptText(const Lease& lease, bool with_turn) const {
  const Tenure::Terms& terms = lease.tenure().terms();
  KeptLease kept{.number = lease.number,
                 .id = lease.id,
                 .name = lease.ask.name,
                 .client = lease.ask.client.name,
                 .meta_version = terms.meta_version,
                 .base = terms.base,
                 .until = lease.until,
                 .lowered = lease.lowered};
  if (with_turn) {
    kept.turn = lease.turns.last();
    kept.turn_clock = lease.turns.last_clock();
  }
  return FormatKeptLease(kept);
}

// --- a start -------------------------------------------------------------------------------------

void LeaseTable::LoadEarlier() {
  const KeptBounds& kept = options_.claim.kept;
  if (options_.boot.empty() || kept.boot != options_.boot) return;
  for (const KeptBound& one : kept.bounds) {
    std::optional<KeptLease> lease = ParseKeptLease(one.lease);
    const Result<MachineId> machine = options_.split.Join(one.slot.worker, one.slot.rack);
    if (!lease || !machine.ok()) continue;
    const Result<std::string> server = ServerOfLease(lease->id);
    if (!server.ok() || *server != options_.address) continue;
    std::string id = lease->id;
    earlier_.emplace(std::move(id), Earlier{one, *std::move(lease), *machine});
  }
}

void LeaseTable::TickEarlier() {
  for (auto one = earlier_.begin(); one != earlier_.end();) {
    one = TickOne(one->second) ? std::next(one) : earlier_.erase(one);
  }
}

// Returns false once the lease is resumed or over.
bool LeaseTable::TickOne(Earlier& earlier) {
  const KeptLease& kept = earlier.kept;
  if (earlier.claim == nullptr) {
    if (!server_.resumes) return true;
    if (now_.id_time >= earlier.bound.bound || server_.uuid != options_.claim.kept.uuid) {
      return now_.id_time < earlier.bound.bound && server_.uuid.empty();
    }
    const auto running = std::count_if(earlier_.begin(), earlier_.end(),
                                       [](const auto& one) { return one.second.claim != nullptr; });
    const bool may = session_ != 0 && server_.resumes && !stop_until_ &&
                     now_.clocks.boot >= earlier.retry_at &&
                     running < static_cast<ptrdiff_t>(kClaimsMax);
    if (!may) return true;
    Tenure::Terms terms;
    terms.uuid = options_.claim.kept.uuid;
    terms.machine = earlier.machine;
    terms.slot = earlier.bound.slot;
    terms.era = earlier.bound.era;
    terms.created_zxid = earlier.bound.created_zxid;
    terms.bound = earlier.bound.bound;
    terms.nonce = earlier.bound.claim;
    terms.version = earlier.bound.version;
    terms.meta_version = kept.meta_version;
    terms.base = kept.base;
    Lease lease;
    lease.number = kept.number;
    lease.ask.name = kept.name;
    earlier.claim =
        ClaimFor(lease, earlier.bound.slot.rack, LeaseClaim::Dead{std::move(terms), kept.lowered});
  }
  earlier.claim->Tick(now_);
  switch (earlier.claim->state()) {
    case LeaseClaim::State::kClaiming:
      return true;
    case LeaseClaim::State::kHeld:
      Resume(earlier);
      return false;
    case LeaseClaim::State::kRefused:
    case LeaseClaim::State::kGone:
    case LeaseClaim::State::kReleasing:
    case LeaseClaim::State::kEnded:
      break;
  }
  if (earlier.claim->is_over()) {
    LogInfo("lease_not_resumed").With("lease", kept.number)
        << "lease " << kept.number << " (" << kept.name
        << ") of an earlier process is not resumed: " << earlier.claim->reason();
    return false;
  }
  earlier.claim.reset();
  earlier.retry_at = now_.clocks.boot + kResumeAgain;
  return true;
}

// The earlier process promised at most the claim's bound. After a crash, its last turn and the last
// end that it returned are unknown.
void LeaseTable::Resume(Earlier& earlier) {
  KeptLease& kept = earlier.kept;
  auto lease = std::make_unique<Lease>();
  lease->number = kept.number;
  lease->id = std::move(kept.id);
  lease->ask.name = std::move(kept.name);
  lease->ask.client.name = std::move(kept.client);
  lease->claim = std::move(earlier.claim);
  lease->granted = lease->answered = true;
  lease->until = std::max(kept.until, lease->from());
  lease->promised = std::max(layout().TickAt(lease->tenure().bound()), lease->until);
  // If the bound is final, this server does not know the cluster's time, which may be ahead of the
  // clocks. The program ignores an end that is before the last one it received.
  if (lease->claim->ending()) lease->until = lease->promised;
  lease->first_until = lease->until;
  const WallMs clock = kept.turn.empty() ? now_.clocks.wall : kept.turn_clock;
  lease->turns = LeaseTurns::Resumed(std::move(kept.turn), clock);
  lease->turn_answered = true;
  lease->lowered = kept.lowered && lease->claim->ending();  // otherwise the resumption has raised R
  lease->kept = KeptText(*lease, false);
  LogInfo("lease_resumed")
          .With("lease", lease->number)
          .With("machine", lease->tenure().terms().machine.value())
      << lease->title() << " of an earlier process was resumed";
  std::string id = lease->id;
  leases_[std::move(id)] = std::move(lease);
}

}  // namespace firn
