#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <ostream>

namespace firn {

using Milliseconds = std::chrono::milliseconds;

// A time of one clock, in milliseconds. Times of different clocks are different types: the wall
// clock can step, the boot clock cannot, and a sum of the two is meaningless.
template <typename Line>
class Moment {
 public:
  constexpr Moment() = default;
  constexpr explicit Moment(int64_t ms) : ms_(ms) {}

  constexpr int64_t ms() const { return ms_; }

  constexpr Moment& operator+=(Milliseconds d) { return ms_ += d.count(), *this; }
  constexpr Moment& operator-=(Milliseconds d) { return ms_ -= d.count(), *this; }
  friend constexpr Moment operator+(Moment t, Milliseconds d) { return t += d; }
  friend constexpr Moment operator-(Moment t, Milliseconds d) { return t -= d; }
  friend constexpr Milliseconds operator-(Moment a, Moment b) {
    return Milliseconds(a.ms_ - b.ms_);
  }
  friend constexpr auto operator<=>(Moment, Moment) = default;
  friend std::ostream& operator<<(std::ostream& out, Moment t) { return out << t.ms_ << " ms"; }

 private:
  int64_t ms_ = 0;
};

// UTC milliseconds since 1970, as in the registry, files and messages. May step in both directions.
using WallMs = Moment<struct WallLine>;

// Milliseconds since this machine booted, suspended time included. Never steps.
using BootMs = Moment<struct BootLine>;

// A count of a layout's time units since its epoch.
class Tick {
 public:
  constexpr Tick() = default;
  constexpr explicit Tick(int64_t count) : count_(count) {}

  constexpr int64_t count() const { return count_; }

  friend constexpr Tick operator+(Tick t, int64_t n) { return Tick(t.count_ + n); }
  friend constexpr Tick operator-(Tick t, int64_t n) { return Tick(t.count_ - n); }
  friend constexpr int64_t operator-(Tick a, Tick b) { return a.count_ - b.count_; }
  friend constexpr auto operator<=>(Tick, Tick) = default;
  friend std::ostream& operator<<(std::ostream& out, Tick t) { return out << "tick " << t.count_; }

 private:
  int64_t count_ = 0;
};

// The number of one machine in the cluster: worker and rack as one value. The layout determines the
// number of bits.
class MachineId {
 public:
  constexpr MachineId() = default;
  constexpr explicit MachineId(uint32_t value) : value_(value) {}

  constexpr uint32_t value() const { return value_; }

  friend constexpr auto operator<=>(MachineId, MachineId) = default;
  friend std::ostream& operator<<(std::ostream& out, MachineId m) { return out << m.value_; }

 private:
  uint32_t value_ = 0;
};

}  // namespace firn
