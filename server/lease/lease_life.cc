#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "common/time/civil_time.h"
#include "server/lease/lease_table.h"

// The life of a LeaseTable's leases: promises, ends, and the release of slots.

namespace firn {

// --- promises ------------------------------------------------------------------------------------

// Rule 2. The claim's bound is in the cluster's time, and this server's id clock may be behind
// that.
firn::Tick LeaseTable::EndFor(const Lease& lease, Milliseconds ahead) const {
  const WallMs end = std::min(lease.claim->TimeAt(now_) + ahead, lease.tenure().bound());
  // Programs refuse an interval that ends after the layout's last tick.
  const firn::Tick last = layout().last_tick() + 1;
  return std::min(last, std::max({layout().TickAt(end), lease.until, lease.from()}));
}

void LeaseTable::Promise(Lease& lease, firn::Tick until, Done done) {
  lease.until = std::max(lease.until, until);
  lease.promised = std::max(lease.promised, until);
  AddWaiting(lease, std::move(done), until);
  Flush(lease);
}

// The limit keeps retries from accumulating while the disk hangs.
void LeaseTable::AddWaiting(Lease& lease, Done done, firn::Tick until) {
  if (lease.waiting.size() < kWaitingMax) {
    return lease.waiting.push_back({std::move(done), until, now_.clocks.boot});
  }
  Refuse(LeaseVerdict::kLater, "too many requests for this lease", done);
}

// Answers before the program's timeout. Otherwise the program would fail over to another server,
// which would claim a second machine id.
void LeaseTable::AnswerClaiming(Lease& lease) {
  std::vector<Waiting> late;
  std::erase_if(lease.waiting, [&](Waiting& one) {
    if (now_.clocks.boot - one.since < kClaimPatience) return false;
    late.push_back(std::move(one));
    return true;
  });
  for (const Waiting& one : late) {
    ++counts_.refused[static_cast<size_t>(LeaseVerdict::kLater)];
    LeaseReply reply = Later(
        "this server is claiming a machine id for the request; repeat it here, with the same "
        "token");
    reply.claiming = true;
    one.done(std::move(reply));
  }
}

// Answers once the disk has a bound at or above all promises (rule 7).
void LeaseTable::Flush(Lease& lease) {
  if (lease.waiting.empty()) return;
  const std::string& uuid = lease.tenure().terms().uuid;
  std::vector<Waiting> answers;
  if (!bounds_.Covers(uuid, BoundOf(lease, layout().StartOf(lease.promised), lease.kept))) {
    bounds_.Keep(uuid, BoundOf(lease, lease.tenure().bound(), lease.kept));
    if (bounds_.trouble().ok()) return;
    std::swap(answers, lease.waiting);
    for (const Waiting& one : answers) {
      Refuse(LeaseVerdict::kLater, CannotKeep().message, one.done);
    }
    return;
  }
  std::swap(answers, lease.waiting);
  // The write may have taken longer than an interval.
  const WallMs now = lease.claim->TimeAt(now_);
  std::erase_if(answers, [&](const Waiting& one) {
    if (now < layout().StartOf(one.until)) return false;
    Refuse(LeaseVerdict::kLater,
           "the interval had ended before the state folder contained it; repeat the request",
           one.done);
    return true;
  });
  if (answers.empty()) return;
  NoteAnswered(lease);
  for (const Waiting& one : answers) {
    one.done({.verdict = LeaseVerdict::kGranted, .terms = TermsOf(lease, one.until)});
  }
}

// A retry gets the same answer and is not counted again.
void LeaseTable::NoteAnswered(Lease& lease) {
  if (lease.turns.any() && !std::exchange(lease.turn_answered, true)) ++counts_.renewed;
  if (std::exchange(lease.answered, true)) return;
  ++counts_.granted;
  const MachineId machine = lease.tenure().terms().machine;
  LogInfo("lease_granted").With("lease", lease.number).With("machine", machine.value())
      << lease.title() << " was granted machine id " << machine.value();
}

LeaseGrant LeaseTable::TermsOf(const Lease& lease, firn::Tick until) const {
  const Tenure::Terms& terms = lease.tenure().terms();
  const Milliseconds left = layout().StartOf(until) - lease.claim->TimeAt(now_);
  return {.lease = lease.id,
          .number = lease.number,
          .server = options_.address,
          .layout = layout(),
          .machine = terms.machine,
          .worker = terms.slot.worker,
          .rack = terms.slot.rack,
          .base_bits = layout().BaseBits(terms.machine, 0),
          .sequence_count = layout().ids_per_tick(),
          .from = lease.from(),
          .until = until,
          .renew_in = std::max(left / 3, kRenewMin),
          .ending = lease.claim->ending()};
}

void LeaseTable::Grant(Lease& lease) {
  lease.granted = true;
  full_racks_.erase(lease.tenure().terms().slot.rack);
  lease.first_until = EndFor(lease, std::min(AheadOf(lease.ask.ahead), kFirstAhead));
  lease.until = lease.promised = lease.first_until;
  lease.kept = KeptText(lease, false);
  for (Waiting& one : lease.waiting) one.until = lease.first_until;
}

void LeaseTable::Revoke(Lease& lease, std::string why) {
  const WallMs from = lease.tenure().terms().base;
  const WallMs until = layout().StartOf(lease.promised);
  LogError("lease_revoked").With("lease", lease.number)
      << lease.title() << " of machine id " << lease.tenure().terms().machine.value()
      << " is revoked: " << why << "; its ids from " << FormatRfc3339(from) << " to "
      << FormatRfc3339(until) << " may be duplicated";
  lease.revoked = std::move(why);
  lease.kept.clear();
  bounds_.Keep(lease.tenure().terms().uuid, BoundOf(lease, lease.tenure().bound(), {}));
  std::vector<Waiting> answers;
  std::swap(answers, lease.waiting);
  for (const Waiting& one : answers) Refuse(LeaseVerdict::kRevoked, lease.revoked, one.done);
}

// --- the control thread's turn -------------------------------------------------------------------

void LeaseTable::Tick(const KeeperTime& now, Server server) {
  now_ = now;
  const int copies = server_.copies;
  server_ = std::move(server);
  if (server_.copies != copies) LeaveToOriginal();
  if (last_number_ == 0) last_number_ = static_cast<uint64_t>(now.clocks.wall.ms());
  TickEarlier();
  // An answer may trigger another call, so the table must not change during the iteration.
  std::vector<std::string> over;
  for (const auto& [id, lease] : leases_) {
    if (!TickLease(*lease)) over.push_back(id);
  }
  for (const std::string& id : over) {
    const Lease& lease = *leases_.at(id);
    Close(id, lease.granted ? layout().StartOf(lease.promised) : WallMs());
  }
  std::erase_if(ended_, [this](Ended& ended) { return !TickEnded(ended); });
  // Only a checked clock proves that a bound has passed.
  const bool checked = server_.resumes || server_.why_not.empty();
  bounds_.Tick(now.clocks.boot, checked ? now.id_time : WallMs(), 2 * options_.claim.skew_max);
}

// Returns false if the lease has ended.
bool LeaseTable::TickLease(Lease& lease) {
  // Rule 6. Checked first, because a bound that has passed ends the claim, too.
  if (lease.granted && lease.claim->TimeAt(now_) >= layout().StartOf(lease.promised)) {
    if (!lease.revoked.empty() || !lease.answered) return false;
    ++counts_.expired;
    LogInfo("lease_expired").With("lease", lease.number)
        << lease.title() << " was not renewed in time";
    return false;
  }
  lease.claim->Tick(now_);
  switch (lease.claim->state()) {
    case LeaseClaim::State::kRefused:
      return OnRefused(lease);
    case LeaseClaim::State::kHeld:
      if (!lease.granted) Grant(lease);
      break;
    case LeaseClaim::State::kGone:
      if (lease.revoked.empty()) {
        ++counts_.lost;
        Revoke(lease, lease.claim->reason());
      }
      return true;
    case LeaseClaim::State::kClaiming:
      AnswerClaiming(lease);
      return true;
    case LeaseClaim::State::kReleasing:
    case LeaseClaim::State::kEnded:
      return true;
  }
  highest_bound_ = std::max(highest_bound_, lease.tenure().bound());
  if (stop_until_ && Suspend(lease)) return true;
  Flush(lease);
  return true;
}

bool LeaseTable::OnRefused(Lease& lease) {
  const LeaseClaim& claim = *lease.claim;
  const bool none = claim.lacks_share();
  if (none) {
    no_share_ = claim.reason();
    no_share_until_ = now_.clocks.boot + kShareEvery;
  }
  if (claim.none_free()) {
    const Milliseconds wait = std::min(claim.retry_after(), kRackEvery);
    full_racks_[claim.rack()] = {claim.reason(), now_.clocks.boot + wait};
    if (TryAnotherRack(lease)) return true;
  } else {
    full_racks_.erase(claim.rack());
  }
  std::vector<Waiting> answers;
  std::swap(answers, lease.waiting);
  for (const Waiting& one : answers) {
    Refuse(none ? LeaseVerdict::kRefused : LeaseVerdict::kLater, claim.reason(), one.done);
  }
  return false;
}

// Removes the lease from the table; nothing extends it afterwards. Its slot is released at `bound`.
void LeaseTable::Close(const std::string& id, WallMs bound) {
  const auto found = leases_.find(id);
  const std::unique_ptr<Lease> lease = std::move(found->second);
  leases_.erase(found);
  ids_.erase(lease->ask.token);
  for (const Waiting& one : lease->waiting) {
    Refuse(LeaseVerdict::kLater, "the lease has ended; use another token", one.done);
  }
  if (lease->claim->state() != LeaseClaim::State::kHeld || lease->claim->ending()) return;
  bounds_.Keep(lease->tenure().terms().uuid, BoundOf(*lease, bound, {}));
  LeaseShown shown = Shown(*lease);
  shown.ending = true;
  shown.trouble = Cat("it has ended; its machine id is free from ", FormatRfc3339(bound),
                      " on, once the registry has recorded its end");
  ended_.push_back({std::move(lease->claim), std::move(shown), bound});
}

// Rules 6 and 7. A zero nonce lets servers claim the slot although its bound is still ahead, so it
// is written only when the bound is near. The lower bound is on disk before that. Returns false
// once nothing is left to do.
bool LeaseTable::TickEnded(Ended& ended) {
  LeaseClaim& claim = *ended.claim;
  claim.Tick(now_);
  const bool over =
      claim.state() != LeaseClaim::State::kHeld && claim.state() != LeaseClaim::State::kReleasing;
  if (claim.state() == LeaseClaim::State::kEnded) {
    full_racks_.erase(
        claim.tenure()->terms().slot.rack);  // this rack has a free machine id from the bound on
  }
  if (over || (claim.ending() && !ended.asked)) return false;
  const bool near = claim.TimeAt(now_) + kReleaseAhead >= ended.bound;
  const bool may = bounds_.MayLower(claim.tenure()->terms().slot, ended.bound, {});
  if (ended.asked || !may || (!near && !stop_until_)) return true;
  ended.asked = true;
  if (near) {
    claim.Release(ended.bound, now_.clocks.boot + options_.claim.release_wait);
  } else {
    claim.Suspend(ended.bound, *stop_until_);
  }
  return true;
}

// --- reports -------------------------------------------------------------------------------------

std::vector<LeaseShown> LeaseTable::List() const {
  std::vector<LeaseShown> shown;
  for (const auto& [id, lease] : leases_) {
    if (lease->granted) shown.push_back(Shown(*lease));
  }
  for (const Ended& ended : ended_) shown.push_back(ended.shown);
  std::sort(shown.begin(), shown.end(),
            [](const LeaseShown& a, const LeaseShown& b) { return a.number < b.number; });
  return shown;
}

LeaseShown LeaseTable::Shown(const Lease& lease) const {
  const Tenure::Terms& terms = lease.tenure().terms();
  return {.number = lease.number,
          .name = lease.ask.name,
          .client = lease.ask.client.name,
          .machine = terms.machine,
          .worker = terms.slot.worker,
          .rack = terms.slot.rack,
          .from = layout().StartOf(lease.from()),
          .until = layout().StartOf(lease.promised),
          .bound = terms.bound,
          .ending = lease.claim->ending(),
          .trouble = lease.revoked.empty() ? lease.claim->reason() : lease.revoked};
}

LeaseCounts LeaseTable::counts() const {
  LeaseCounts counts = counts_;
  counts.held = leases_.size() - claims_under_way() + ended_.size();
  return counts;
}

WallMs LeaseTable::highest_bound() const { return std::max(highest_bound_, bounds_.highest()); }

}  // namespace firn
