#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// Behaviour while the wall clock is behind the id clock.
enum class ClockPolicy : uint8_t {
  kRun,     // continue at the boot clock's pace
  kStrict,  // stop, as classic generators do
};

struct IdClockOptions {
  ClockPolicy policy = ClockPolicy::kRun;
  Milliseconds jump_max{5'000};  // largest jump ahead that is followed at once
  // Time for which a larger jump must persist. Absent: it is followed only by RaiseTo, and the
  // clock is stopped meanwhile.
  std::optional<Milliseconds> jump_hold{30'000};
  bool registry_has_clock = false;  // a larger jump must agree with the registry's clock, too,
  Milliseconds registry_skew_max{10'000};  // within this difference
  Milliseconds alarm{1'000};               // skew above which there is an alarm
  Milliseconds alarm_interval{60'000};
};

struct IdClockReport {
  WallMs time;           // the id clock
  Milliseconds skew{0};  // id clock minus wall clock: positive when the wall clock is behind
  std::optional<Milliseconds> ahead_of_registry{};  // wall clock minus the registry's, if known
  bool jump_held = false;      // the wall clock is far ahead, and not yet followed
  bool stopped = false;        // see IdPace::stopped
  uint64_t steps_forward = 0;  // observed steps of the wall clock, followed or not
  uint64_t steps_back = 0;
};

// The arithmetic of the id clock: computes its time from a reading of both clocks. Without I/O, and
// owned by one thread; IdClock makes it thread-safe.
//
// 1. It starts at the first wall time or at a base, whichever is later, and never falls, except
//    by Restart: before any id was issued, that sets it to a time that has been checked.
// 2. It advances with the boot clock since the last reading. The result is the expected time.
// 3. Wall clock ahead of the expected time by at most jump_max: follow it.
// 4. Ahead by more: keep the expected time until the wall clock has been ahead by about the same
//    distance for jump_hold, and the registry's clock, if there is one, agrees; then follow it.
//    Without a jump_hold: stop until the wall clock is back, or RaiseTo confirms it.
// 5. Wall clock 1 ms behind: hold, because two clocks rounded to milliseconds differ that much.
// 6. Further behind, policy run: continue; at nine tenths of the pace while the difference is at
//    most jump_max, so that it vanishes. A larger difference stays and is exported as a metric.
// 7. Further behind, policy strict: hold, and report it.
class IdPace {
 public:
  explicit IdPace(IdClockOptions options) : options_(options) {}

  // Ignores a reading that is older than an earlier one.
  WallMs Advance(Now now);
  void RaiseTo(WallMs base);
  // Sets the time at `now` to `time`, and forgets earlier readings.
  void Restart(WallMs time, Now now);
  void NoteRegistryClock(WallMs registry, Now now) { registry_ = Now{registry, now.boot}; }

  WallMs time() const { return WallMs(tenths_ / 10); }
  // Whether no id may be issued now: the wall clock is behind (policy strict), or has made a jump
  // that is not confirmed yet (no jump_hold).
  bool stopped() const { return stopped_; }
  // Positive when the wall clock is behind.
  Milliseconds skew() const { return seen_ ? time() - seen_->wall : Milliseconds(0); }
  IdClockReport report() const;

  // Returns true at most once per alarm_interval while the skew is above the alarm's limit.
  bool AlarmIsDue();

 private:
  // A jump that is not followed yet: its beginning, and how far ahead it is.
  struct Jump {
    BootMs since;
    int64_t ahead_tenths;
  };

  void CountSteps(Now now);
  void GetAhead(Now now, int64_t expected_tenths);
  void FallBehind(Now now, int64_t expected_tenths, int64_t passed_ms);
  bool FarJumpIsBelieved(Now now, int64_t ahead_tenths);
  std::optional<Milliseconds> AheadOfRegistry(Now now) const;
  bool RegistryAgrees(Now now) const;

  const IdClockOptions options_;
  std::optional<Now> seen_;  // the newest reading
  int64_t tenths_ = 0;       // the id clock, in tenths of a millisecond
  std::optional<Jump> jump_;
  std::optional<Now> registry_;  // the registry's clock, and the boot clock at that moment
  std::optional<BootMs> alarmed_;
  bool stopped_ = false;
  uint64_t steps_forward_ = 0;
  uint64_t steps_back_ = 0;
};

}  // namespace firn
