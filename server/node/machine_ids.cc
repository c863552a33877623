#include "server/node/machine_ids.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "server/issue/snowflake/snowflake_lanes.h"

namespace firn {
namespace {

bool IsHeld(const ClaimStatus& claim) { return claim.machine.has_value(); }

// Returns a rank that is higher the closer the state is to holding a machine id.
int RankOf(ClaimState state) {
  switch (state) {
    case ClaimState::kHolding:
      return 5;
    case ClaimState::kLapsing:
      return 4;
    case ClaimState::kClaiming:
      return 3;
    case ClaimState::kSeeking:
      return 2;
    case ClaimState::kReleasing:
      return 1;
    case ClaimState::kReleased:
      break;
  }
  return 0;
}

bool IsLess(const ClaimStatus& a, const ClaimStatus& b) {
  return RankOf(a.state) < RankOf(b.state);
}

}  // namespace

void ClaimBridge::Adopt(std::shared_ptr<Claim> claim) {
  const Tick first = claim->first_tick();
  before_first_ = first - 1;
  ++use_.adopted;
  // The clock is raised first: a claim that is resumed after the wall clock was set back begins
  // ahead of that clock.
  ticks_.RaiseTo(first);
  const Status adopted = snowflake_.Adopt(std::move(claim));
  if (!adopted.ok())
    LogError("claim_unusable") << "no id can be issued under the claim: " << adopted;
}

WallMs ClaimBridge::SetIdClock(WallMs time, Now now) {
  if (!use_.begun()) ticks_.Restart(time, now);
  return ticks_.id_clock().Last();
}

Tick ClaimBridge::Last() const { return snowflake_.Last().value_or(before_first_); }

Tick ClaimBridge::Close() {
  const Tick last = snowflake_.CloseClaim().value_or(before_first_);
  --use_.adopted;
  use_.issued |= last > before_first_;
  return last;
}

MachineIds::MachineIds(size_t count, const MakeKeeper& make, IdClock& id_clock, TickSource& ticks,
                       Entropy& entropy, const SnowflakeOptions& options)
    : id_clock_(id_clock) {
  std::vector<std::shared_ptr<Snowflake>> lanes;
  for (size_t i = 0; i < count; ++i) {
    lanes.push_back(std::make_shared<Snowflake>(ticks, entropy, options));
    kept_.push_back(std::make_unique<Kept>(lanes.back(), ticks, use_));
    kept_.back()->keeper = make(i, kept_.back()->bridge);
  }
  // With a single machine id, its lane is used directly.
  strategy_ = lanes.front();
  if (count > 1) strategy_ = std::make_shared<SnowflakeLanes>(std::move(lanes));
}

void MachineIds::OnSession(const SessionEvent& event) {
  for (const auto& one : kept_) one->keeper->OnSession(event);
}

// Calls the first keeper last. At a start, each keeper sets the id clock from its own grant. The
// previous process certainly held the first machine id, but perhaps not the others. Each call
// re-reads the id clock, because the previous keeper may have set it.
void MachineIds::Tick(Now now) {
  for (size_t i = kept_.size(); i > 0; --i) {
    kept_[i - 1]->keeper->Tick({now, id_clock_.Advance(now)});
  }
}

void MachineIds::Release(Now now) {
  for (const auto& one : kept_) one->keeper->Release({now, id_clock_.Advance(now)});
}

bool MachineIds::holds() const {
  return std::any_of(kept_.begin(), kept_.end(),
                     [](const auto& one) { return one->keeper->state() == ClaimState::kHolding; });
}

bool MachineIds::checked() const {
  const auto uses = [](const auto& one) {
    const ClaimState state = one->keeper->state();
    return state == ClaimState::kHolding || state == ClaimState::kLapsing;
  };
  return std::ranges::any_of(kept_, uses) && std::ranges::all_of(kept_, [&](const auto& one) {
           return !uses(one) || one->keeper->checked();
         });
}

std::vector<ClaimStatus> MachineIds::status(const KeeperTime& now) const {
  std::vector<ClaimStatus> all;
  for (const auto& one : kept_) all.push_back(one->keeper->status(now));
  return all;
}

ClaimStatus Together(const std::vector<ClaimStatus>& claims) {
  ClaimStatus all = *std::max_element(claims.begin(), claims.end(), IsLess);
  all.renewals = {};
  const auto held = std::count_if(claims.begin(), claims.end(), IsHeld);
  for (const ClaimStatus& claim : claims) {
    all.bound = std::max(all.bound, claim.bound);
    all.renewals += claim.renewals;
    if (all.uuid.empty()) all.uuid = claim.uuid;
    if (all.grant_trouble.empty()) all.grant_trouble = claim.grant_trouble;
    if (all.clock_trouble.empty()) {
      all.clock_trouble = claim.clock_trouble;
      all.registry_clock_off = claim.registry_clock_off;
    }
    if (!all.reason.empty() || claim.reason.empty()) continue;
    all.reason = Cat(held, " of ", claims.size(), " machine ids are held: ", claim.reason);
  }
  return all;
}

}  // namespace firn
