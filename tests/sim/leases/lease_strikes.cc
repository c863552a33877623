// Faults in a world of leases.

#include <algorithm>
#include <memory>
#include <utility>

#include "common/id/rack_split.h"
#include "registry/cluster/slot.h"
#include "tests/sim/leases/lease_world.h"
#include "tests/sim/sim_sizes.h"

namespace firn {
namespace {

constexpr Milliseconds kClockAhead{4'000};

}  // namespace

void LeaseWorld::Strike() {
  const bool needs_losses = !is_honest_ && loses_data_;
  const bool may_lose = !outage_ && !shared_.gap;
  if (needs_losses && may_lose && OneIn(3)) return StrikeData();
  switch (dice_.Below(5)) {
    case 0:
    case 1:
      return StrikeHost(AnyHost());
    case 2:
    case 3:
      return StrikeProgram(AnyProgram());
    default:
      return StrikeRegistry();
  }
}

void LeaseWorld::StrikeHost(LeaseHost& host) {
  LeaseDisk& disk = host.disk();
  const int64_t session = host.session();
  switch (dice_.Below(shared_.copies_servers ? 9 : 7)) {
    case 0:
      shared_.Count("servers killed");
      return host.Kill();
    case 1:
      shared_.Count("servers stopped");
      return host.Stop();
    case 2:
      host.PauseInStep();
      [[fallthrough]];
    case 3:
      shared_.Count("servers paused");
      host.paused_until = clock_.Boot() + UpTo(OneIn(3) ? 200'000 : 10'000);
      break;
    case 4:
      host.Disconnect();
      break;
    case 5:
      disk.fails = !disk.fails && OneIn(2);
      disk.stalled = !disk.stalled && !disk.fails && OneIn(2);
      return;
    case 6:
      return StrikeClock(host.clock());
    default:
      return CopyServer(host);
  }
  if (OneIn(2)) shared_.ExpireLater(session);
}

void LeaseWorld::StrikeProgram(LeaseProgram& program) {
  const bool gives_back = shared_.mutant == LeaseMutant::kEndedWhileOpen;
  if (gives_back && !OneIn(4)) return program.Leave();
  switch (dice_.Below(shared_.copies ? 10 : 6)) {
    case 0:
      shared_.Count("programs killed");
      return program.Kill();
    case 1:
      return program.Leave();
    case 2:
    case 3:
      shared_.Count("programs paused");
      program.paused_until = clock_.Boot() + UpTo(OneIn(2) ? 90'000 : 10'000);
      return;
    case 4:
      return StrikeClock(program.clock());
    case 5:
      // Hours, days or decades. Most servers refuse the clock until it is corrected.
      shared_.Count("clocks hours off");
      return program.clock().SetOff(DrawOff(dice_), clock_.Boot() + UpTo(60'000));
    default:
      return CopyProgram(program);
  }
}

// Copies a program's machine. The copy continues at once or later, in parallel with the original.
void LeaseWorld::CopyProgram(LeaseProgram& program) {
  if (programs_.size() > 2 * first_programs_) return;
  auto copy = program.Copy(static_cast<int>(programs_.size()));
  if (copy == nullptr) return;
  shared_.Count("programs copied");
  if (OneIn(2)) copy->paused_until = clock_.Boot() + UpTo(60'000);
  copy->leaves_next = shared_.mutant == LeaseMutant::kOlderTurnBelieved || OneIn(3);
  programs_.push_back(std::move(copy));
}

// Copies a server's running machine, or in one case of four only its state folder. The copy
// continues at once or later, in parallel with the original.
void LeaseWorld::CopyServer(LeaseHost& host) {
  if (hosts_.size() + asleep_.size() >= 2 * first_hosts_ || !host.running()) return;
  const BootMs now = clock_.Boot();
  if (is_honest_ && OneIn(4)) {
    shared_.Count("state folders copied");
    hosts_.push_back(host.CopyFolder());
    if (outage_) hosts_.back()->Disconnect();
    return;
  }
  auto copy = host.Copy();
  if (copy == nullptr) return;
  shared_.Count("servers copied");
  asleep_.push_back({std::move(copy), now, now + UpTo(OneIn(2) ? 0 : 60'000)});
  // Either the copy replaces its machine (a snapshot), or both run.
  if (is_honest_ && OneIn(4)) host.Kill();
}

void LeaseWorld::WakeCopies() {
  const BootMs now = clock_.Boot();
  for (Asleep& sleeper : std::exchange(asleep_, {})) {
    if (sleeper.until > now) {
      asleep_.push_back(std::move(sleeper));
      continue;
    }
    hosts_.push_back(std::move(sleeper.copy));
    hosts_.back()->Resume(now - sleeper.since, now + UpTo(60'000));
    if (outage_) hosts_.back()->Disconnect();
  }
}

void LeaseWorld::StrikeClock(HostClock& clock) {
  switch (dice_.Below(5)) {
    case 0:
      return clock.StepWall(UpTo(9'000));
    case 1:
      return clock.StepWall(-UpTo(9'000));
    case 2:
      shared_.Count("clocks hours off");
      return clock.StepWall(OneIn(2) ? UpTo(14'000'000) : -UpTo(14'000'000));
    case 3:
      return clock.SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
    default:
      return clock.SetRight();
  }
}

void LeaseWorld::StrikeRegistry() {
  if (outage_) return SetOutage(false);
  if (loses_data_ && !shared_.gap && OneIn(2)) return StrikeData();
  switch (dice_.Below(6)) {
    case 0:
      return SetOutage(true);
    case 1:
      return registry_clock_.StepWall(UpTo(8'000) - Milliseconds(4'000));
    case 2:
      return registry_clock_.SetRight();
    case 3:
      if (is_honest_ && operator_.IsWhole()) operator_.Reserve();
      return;
    case 4:
      if (is_honest_ && operator_.IsWhole()) operator_.Retire();
      return;
    default:
      return tree_.Expire(AnyHost().session());
  }
}

void LeaseWorld::StrikeData() {
  const uint64_t dice = dice_.Below(is_honest_ ? 4 : 6);
  if (dice < 2 || !operator_.has_backup()) return operator_.SaveBackup();
  restore_at_ = clock_.Boot() + UpTo(60'000);
  dice == 2 ? operator_.LoseData() : PutBack();
}

// Kills every server and replaces the registry by an older state. The first server to start has a
// bound of a lease on its disk, or is a new one, which finds the machine ids of leases free.
void LeaseWorld::PutBack() {
  const WallMs soon = clock_.Wall() + Milliseconds(5'000);
  const auto first = std::ranges::find_if(
      hosts_, [soon](const auto& host) { return host->HasPromisedAfter(soon); });
  if (first == hosts_.end()) return;
  for (const auto& host : hosts_) host->Kill();
  const bool is_new = shared_.mutant == LeaseMutant::kBoundsAlone || (is_honest_ && OneIn(2));
  const auto other = std::ranges::find_if(hosts_, [&](const auto& host) { return host != *first; });
  if (is_new && other != hosts_.end()) {
    operator_.LoseData();
    for (const auto& host : hosts_) {
      host->paused_until = clock_.Boot() + Milliseconds(5'000) + UpTo(15'000);
      host->disk().claims.hint.reset();  // only its leases' bounds can show the loss
    }
    (*other)->disk() = {.claims = {.identity = (*other)->disk().claims.identity}};
    (*other)->clock().SetRight();
    (*other)->Start(true);
    restore_at_ = clock_.Boot() + Milliseconds(60'000);
    return;
  }
  operator_.PutBack(**first);
  (*first)->clock().SetRight();
  // Loss detection must work from the bounds of its leases only.
  if (OneIn(2)) (*first)->disk().claims.hint.reset();
  (*first)->Start(true);
}

// Stops a server cleanly. Another server, which is not simulated and whose clock is ahead, claims
// the machine ids of its leases as soon as possible. Then rolls the registry back to before both
// events, freezes it, and starts the first server.
void LeaseWorld::StrikeStop() {
  if (stopped_ == nullptr) {
    if (stop_dice_.Below(20) != 0 || outage_ || !operator_.IsWhole()) return;
    LeaseHost& host = *hosts_[stop_dice_.Below(hosts_.size())];
    if (!host.running() || !host.connected()) return;
    if (!host.HasPromisedAfter(clock_.Wall() + kClockAhead)) return;
    operator_.SaveBackup();
    host.Stop();
    stopped_ = &host;
    return;
  }
  if (stopped_->running() || outage_) return;
  const std::vector<KeptBound> lowered = LoweredBy(*stopped_);
  const auto is_free = [&](const KeptBound& one) {
    return one.bound <= clock_.Wall() + kClockAhead;
  };
  if (!lowered.empty() && std::ranges::none_of(lowered, is_free)) return;
  LeaseHost& host = *std::exchange(stopped_, nullptr);
  if (lowered.empty() || !operator_.IsWhole()) return;
  shared_.Count("losses of stops");
  operator_.LoseAndFreeze();
  restore_at_ = clock_.Boot() + Milliseconds(60'000);
  for (const KeptBound& one : lowered) {
    if (is_free(one)) NoteLostClaim(one);
  }
  host.Start(true);
}

// Returns the leases that have not ended and whose bounds the stop has also lowered in the
// registry.
std::vector<KeptBound> LeaseWorld::LoweredBy(const LeaseHost& host) const {
  std::vector<KeptBound> kept = host.KeptLeases();
  std::erase_if(kept, [this](const KeptBound& one) {
    const auto node = tree_.Peek(SlotPath(one.slot));
    if (one.lease.empty() || one.bound <= clock_.Wall() || !node) return true;
    const SlotRecord record = *ParseSlotRecord(node->data);
    const bool was_set = node->stat.version > one.version;
    return record.nonce != one.claim || record.bound != one.bound || !was_set;
  });
  return kept;
}

// Records the claim of the other server, from the lowered bound to the bound in the rolled-back
// registry.
void LeaseWorld::NoteLostClaim(const KeptBound& lowered) {
  const auto node = tree_.Peek(SlotPath(lowered.slot));
  if (!node) return;
  const Layout& layout = shared_.layout;
  const std::string name = "lost claim " + std::to_string(++shared_.named);
  const auto holder =
      oracle_.Begin(*RackSplit::Make(layout, 0)->Join(lowered.slot.worker, lowered.slot.rack), name,
                    name, layout.FirstTickFrom(lowered.bound));
  oracle_.Extend(holder, layout.TickAt(ParseSlotRecord(node->data)->bound));
}

void LeaseWorld::SetOutage(bool outage) {
  outage_ = outage;
  if (outage) shared_.Count("outages");
  shared_.Trace(outage ? "the registry goes away" : "the registry is back");
  for (const auto& host : hosts_) outage ? host->Disconnect() : host->Reconnect();
}

}  // namespace firn
