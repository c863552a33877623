#pragma once

#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// What the time is for the keeper of a claim: read just before each call.
struct KeeperTime {
  Now clocks;
  WallMs id_time;  // the id clock
};

}  // namespace firn
