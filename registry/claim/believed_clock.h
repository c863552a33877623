#pragma once

#include <cstdint>
#include <optional>

#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// The registry's time as this process believes it: the last reading that was believed, carried by
// the boot clock. A value; owned by the control thread.
//
//  1. A reading that a claim's check has compared with the wall clock is believed.
//  2. A later one is believed while it lies within `skew_max` of the carried time. A leader whose
//     clock steps must not move every holder's bound with it.
//  3. A greater step is believed once the wall clock confirms it: within `skew_max`, too. Where the
//     registry's clock is this host's own (`dir://`), the wall clock confirms nothing.
//  4. Otherwise the carried time stays in use, and off() returns how far the reading was from it.
class BelievedClock {
 public:
  BelievedClock(Milliseconds skew_max, bool shares_wall)
      : skew_max_(skew_max), shares_wall_(shares_wall) {}

  // Accepts a reading, received at `now`, that was compared with the wall clock.
  void Confirm(WallMs shown, BootMs now);
  // Takes any other reading; `asked` and `now` are the local clocks before and after the request.
  // Returns whether it is believed.
  bool Hear(WallMs shown, Now asked, Now now);

  // Empty until a reading is believed.
  std::optional<WallMs> At(BootMs now) const;
  // The last reading, believed or not, carried by the boot clock; 0: there was none.
  WallMs ShownAt(BootMs now) const;
  // How far the last reading lies ahead of the believed time; 0 while it is believed.
  Milliseconds off() const { return off_; }
  // Whether the last reading was not believed.
  bool disagrees() const { return off_ != Milliseconds(0); }
  bool shares_wall() const { return shares_wall_; }

 private:
  Milliseconds skew_max_;
  bool shares_wall_;
  std::optional<int64_t> ahead_;  // believed time minus the boot clock
  std::optional<int64_t> shown_;  // last reading minus the boot clock
  Milliseconds off_{0};
};

}  // namespace firn
