#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// What to do while the wall clock is behind the id clock.
enum class ClockPolicy : uint8_t {
  kRun,     // go on at the boot clock's pace
  kStrict,  // stop, as the classic generators do
};

struct IdClockOptions {
  ClockPolicy policy = ClockPolicy::kRun;
  Milliseconds jump_max{5'000};     // the wall clock is followed at once up to this far ahead
  Milliseconds jump_hold{30'000};   // how long a farther jump must have stood
  bool registry_has_clock = false;  // then a farther jump needs its agreement too,
  Milliseconds registry_skew_max{10'000};  // within this
  Milliseconds alarm{1'000};               // a skew beyond it is an alarm
  Milliseconds alarm_interval{60'000};
};

struct IdClockReport {
  WallMs time;                 // the id clock
  Milliseconds skew{0};        // id clock minus wall clock: positive when the wall clock is behind
  bool jump_held = false;      // the wall clock is far ahead, and not yet believed
  bool stopped = false;        // policy `strict`, and the wall clock is behind
  uint64_t steps_forward = 0;  // steps of the wall clock seen, followed or not
  uint64_t steps_back = 0;
};

// The arithmetic of the id clock: one reading of both clocks in, the id clock's time out. Pure, and
// owned by one thread; IdClock makes it shareable.
//
// 1. It starts at the first wall time seen or at a base, the later one, and never goes back, except
//    by Restart: before any id was given out it is set to a time that has been checked.
// 2. Its pace is the boot clock's since the last reading; call where that leads the expected time.
// 3. Wall clock ahead of the expected time by at most jump_max: follow it.
// 4. Ahead by more: stay on pace until the wall clock has been that far ahead, by about the same
//    distance, for jump_hold, and the registry's clock, where there is one, agrees; then follow.
// 5. Wall clock a millisecond behind: two clocks cut to milliseconds differ by so much. Hold.
// 6. Further behind, policy run: go on at pace; at nine tenths of it while the difference is at
//    most jump_max, so that it heals. A greater one stays and is exported.
// 7. Further behind, policy strict: hold, and say so.
class IdPace {
 public:
  explicit IdPace(IdClockOptions options) : options_(options) {}

  // Readings older than one already seen change nothing.
  WallMs Advance(Now now);
  void RaiseTo(WallMs base);
  // Shows `time` at `now`, as if nothing had been read before.
  void Restart(WallMs time, Now now);
  void NoteRegistryClock(WallMs registry, Now now) { registry_ = Now{registry, now.boot}; }

  WallMs time() const { return WallMs(tenths_ / 10); }
  bool stopped() const { return stopped_; }
  // Positive when the wall clock is behind.
  Milliseconds skew() const { return seen_ ? time() - seen_->wall : Milliseconds(0); }
  IdClockReport report() const;

  // True at most once per alarm_interval while the skew is beyond the alarm.
  bool AlarmIsDue();

 private:
  // A jump that is not believed yet: since when it stands, and how far ahead it led.
  struct Jump {
    BootMs since;
    int64_t ahead_tenths;
  };

  void CountSteps(Now now);
  void GetAhead(Now now, int64_t expected_tenths);
  void FallBehind(Now now, int64_t expected_tenths, int64_t passed_ms);
  bool FarJumpIsBelieved(Now now, int64_t ahead_tenths);
  bool RegistryAgrees(Now now) const;

  const IdClockOptions options_;
  std::optional<Now> seen_;  // the newest reading
  int64_t tenths_ = 0;       // the id clock, in tenths of a millisecond
  std::optional<Jump> jump_;
  std::optional<Now> registry_;  // its clock, and ours of the boot at that moment
  std::optional<BootMs> alarmed_;
  bool stopped_ = false;
  uint64_t steps_forward_ = 0;
  uint64_t steps_back_ = 0;
};

}  // namespace firn
