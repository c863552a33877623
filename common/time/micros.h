#pragma once

#include <chrono>

namespace firn::client {

// A duration, or a time since this machine booted (Clock::BootMicros). The client uses no other
// clock, because it measures durations of milliseconds.
using Micros = std::chrono::microseconds;

}  // namespace firn::client
