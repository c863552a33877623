#pragma once

#include "common/base/units.h"
#include "common/time/clock.h"

namespace firn {

// The time as passed to a keeper: read immediately before each call.
struct KeeperTime {
  Now clocks;
  WallMs id_time;  // the id clock
};

}  // namespace firn
