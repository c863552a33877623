#pragma once

#include <chrono>

namespace firn::client {

// A duration, and also a moment: the time since this machine booted (Clock::BootMicros). The client
// has no other clock: what it measures is over in milliseconds.
using Micros = std::chrono::microseconds;

}  // namespace firn::client
