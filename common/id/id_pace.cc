#include "common/id/id_pace.h"

#include <algorithm>
#include <cstdlib>

namespace firn {
namespace {

// The wall clock may be slewed by a thousandth; a larger difference is a step.
constexpr int64_t kStepMsMin = 10;
constexpr int64_t kSlewPart = 1000;

int64_t Tenths(WallMs t) { return t.ms() * 10; }
int64_t Tenths(Milliseconds d) { return d.count() * 10; }

}  // namespace

WallMs IdPace::Advance(Now now) {
  if (!seen_) {
    seen_ = now;
    tenths_ = std::max(tenths_, Tenths(now.wall));
    return time();
  }
  if (now.boot < seen_->boot) return time();

  CountSteps(now);
  const int64_t passed_ms = (now.boot - seen_->boot).count();
  const int64_t expected = tenths_ + passed_ms * 10;
  seen_ = now;
  if (Tenths(now.wall) >= expected) {
    GetAhead(now, expected);
  } else {
    FallBehind(now, expected, passed_ms);
  }
  return time();
}

void IdPace::GetAhead(Now now, int64_t expected) {
  stopped_ = false;
  const int64_t ahead = Tenths(now.wall) - expected;
  if (ahead <= Tenths(options_.jump_max) || FarJumpIsBelieved(now, ahead)) {
    jump_.reset();
    tenths_ = Tenths(now.wall);
  } else {
    tenths_ = expected;
    stopped_ = !options_.jump_hold;
  }
}

void IdPace::FallBehind(Now now, int64_t expected, int64_t passed_ms) {
  jump_.reset();
  stopped_ = false;
  const int64_t behind = expected - Tenths(now.wall);
  const int64_t held = std::max(tenths_, Tenths(now.wall));
  if (options_.policy == ClockPolicy::kStrict) {
    stopped_ = tenths_ - Tenths(now.wall) > Tenths(Milliseconds(1));
    tenths_ = held;
  } else if (behind <= Tenths(Milliseconds(1))) {
    tenths_ = held;
  } else if (behind <= Tenths(options_.jump_max)) {
    tenths_ = std::max(tenths_ + passed_ms * 9, held);
  } else {
    tenths_ = expected;
  }
}

bool IdPace::FarJumpIsBelieved(Now now, int64_t ahead) {
  if (!jump_ || std::abs(ahead - jump_->ahead_tenths) > Tenths(options_.jump_max)) {
    jump_ = Jump{now.boot, ahead};
  }
  if (!options_.jump_hold) return false;
  return now.boot - jump_->since >= *options_.jump_hold && RegistryAgrees(now);
}

std::optional<Milliseconds> IdPace::AheadOfRegistry(Now now) const {
  if (!registry_) return std::nullopt;
  return now.wall - (registry_->wall + (now.boot - registry_->boot));
}

bool IdPace::RegistryAgrees(Now now) const {
  if (!options_.registry_has_clock) return true;
  const auto ahead = AheadOfRegistry(now);
  return ahead && std::chrono::abs(*ahead) <= options_.registry_skew_max;
}

void IdPace::RaiseTo(WallMs base) {
  tenths_ = std::max(tenths_, Tenths(base));
  if (!jump_ || Tenths(seen_->wall) - tenths_ > Tenths(options_.jump_max)) return;
  jump_.reset();
  stopped_ = false;
}

void IdPace::Restart(WallMs time, Now now) {
  // Other threads may have read the clocks since then: advance it from that moment.
  const Milliseconds since =
      seen_ ? std::max(seen_->boot - now.boot, Milliseconds(0)) : Milliseconds(0);
  if (!seen_ || since == Milliseconds(0)) seen_ = now;
  tenths_ = Tenths(time + since);
  jump_.reset();
  stopped_ = options_.policy == ClockPolicy::kStrict && skew() > Milliseconds(1);
}

void IdPace::CountSteps(Now now) {
  const int64_t passed_ms = (now.boot - seen_->boot).count();
  const int64_t step_ms = (now.wall - seen_->wall).count() - passed_ms;
  if (std::abs(step_ms) <= kStepMsMin + passed_ms / kSlewPart) return;
  ++(step_ms > 0 ? steps_forward_ : steps_back_);
}

IdClockReport IdPace::report() const {
  IdClockReport report;
  report.time = time();
  report.skew = skew();
  if (seen_) report.ahead_of_registry = AheadOfRegistry(*seen_);
  report.jump_held = jump_.has_value();
  report.stopped = stopped_;
  report.steps_forward = steps_forward_;
  report.steps_back = steps_back_;
  return report;
}

bool IdPace::AlarmIsDue() {
  if (!seen_ || std::chrono::abs(skew()) <= options_.alarm) return false;
  if (alarmed_ && seen_->boot - *alarmed_ < options_.alarm_interval) return false;
  alarmed_ = seen_->boot;
  return true;
}

}  // namespace firn
