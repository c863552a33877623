#include "tests/sim/sim_user.h"

#include <utility>

#include "tests/sim/sim_host.h"

namespace firn {
namespace {

// No processor cycles: only the world advances the time.
constexpr bool kUseCycles = false;

}  // namespace

SimUser::SimUser(SimShared& shared, const Clock& clock, const Layout& layout,
                 SequencerOptions options, uint64_t seed)
    : shared_(shared),
      clock_(clock),
      id_clock_({.policy = shared.strict ? ClockPolicy::kStrict : ClockPolicy::kRun,
                 .registry_has_clock = true}),
      ticks_(layout, id_clock_, clock_, kUseCycles),
      entropy_(seed),
      snowflake_(ticks_, entropy_, {.sequencer = options, .runs_max = Milliseconds(100)}) {}

void SimUser::Adopt(std::shared_ptr<Claim> claim) {
  if (!closed_) Die("adopted twice without a close");
  ticks_.RaiseTo(claim->first_tick());
  if (!snowflake_.Adopt(claim).ok()) Die("a claim under which no id can be issued");
  claim_ = std::move(claim);
  closed_ = false;
  number_ = ++shared_.claims;
}

Tick SimUser::Close() {
  closed_ = true;
  return Told(*snowflake_.CloseClaim());
}

Tick SimUser::Told(Tick last) const {
  const bool lies = shared_.mutant == Mutant::kReleaseToLast && last >= claim_->first_tick();
  return lies ? last - 1 : last;
}

WallMs SimUser::SetIdClock(WallMs time, Now now) {
  if (shared_.mutant == Mutant::kEarlyClockKept) return id_clock_.Last();
  if (shared_.mutant == Mutant::kInheritAtWallsWord) time = now.wall;
  ticks_.Restart(time, now);
  return id_clock_.Last();
}

Verdict SimUser::Take(uint64_t want) {
  call_.Begin({.count = static_cast<int64_t>(want)});
  const Verdict verdict = snowflake_.Issue(call_);
  // Counts a wait for the grant as a refusal: a holder must not report that it is ready while all
  // calls wait.
  const bool late = verdict == Verdict::kWait && call_.refusal().reason == Reason::kNotReady;
  return late ? Verdict::kRefused : verdict;
}

Verdict SimUser::TakeAt(const Now& then, uint64_t want) {
  clock_.read = then;
  const Verdict verdict = Take(want);
  clock_.read.reset();
  return verdict;
}

void SimUser::NoteReadiness(const ClaimKeeper& keeper, const KeeperTime& now) {
  const BootMs boot = now.clocks.boot;
  if (shared_.mutant != Mutant::kReadyByClaim) return readiness_.Note(snowflake_.WhyNot(), boot);
  const ClaimStatus claim = keeper.status(now);
  const bool holds = claim.state == ClaimState::kHolding || claim.state == ClaimState::kLapsing;
  const bool ready = holds && claim.left > Milliseconds(0);
  readiness_.Note(ready ? std::nullopt : std::optional(Refusal{.message = claim.reason}), boot);
}

}  // namespace firn
