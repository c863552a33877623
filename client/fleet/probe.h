#pragma once

#include "common/time/micros.h"

namespace firn::client {

// The next probe of a server that calls avoid. A value, thread-compatible.
struct Probe {
  Micros at{0};
  bool under_way = false;

  // Returns true once, when the probe is due.
  bool Take(Micros now) {
    if (under_way || now < at) return false;
    return under_way = true;
  }
};

}  // namespace firn::client
