#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "tests/support/registry/faults.h"

namespace firn {

// What may strike.
enum class Fault {
  kKill,
  kDieSoon,  // in the midst of a write to disk or registry
  kReboot,
  kStop,
  kPauseInStep,
  kPause,
  kCut,
  kClock,
  kDisk,
  kRegistry,
  kCopy,  // of the whole machine, as it runs
  kCount,
};

// What may strike the registry as a whole.
enum class RegistryFault {
  kOutage,   // begins or ends
  kExpire,   // one session
  kBackup,   // is made: no harm yet
  kLoss,     // of data
  kDelete,   // of one slot's record
  kRepeat,   // made anew, up to the numbers that a holder remembers
  kRestore,  // of a healthy cluster
  kClock,    // its own steps, drifts, or is set right
  kCount,
};

// When simulated time begins.
inline constexpr WallMs kSimStart{1'750'000'000'000};

// How big a seed's world is and how often what goes wrong in it, drawn from the seed: one size
// hides the errors of another.
struct SimSizes {
  int hosts = 1;       // 1 to 5
  uint32_t slots = 1;  // 1 to 6 of each rack
  int rack_bits = 0;   // 0 to 2
  int steps = 0;
  bool wraps = false;        // versions of nodes begin where they soon wrap
  bool copies = false;       // machines are copied as they run
  bool strict = false;       // nothing is issued while the wall clock is behind
  bool probes = false;       // of readiness, in each round of a host
  bool steady = false;       // at the end the registry's clock is wrong once more
  bool strides = false;      // seconds pass between steps, so that days are simulated
  uint64_t fault_every = 0;  // steps, on average
  uint64_t start_every = 1;  // chances, until a host that is down comes back
  uint64_t off_one_in = 0;   // boots, on average, with a clock that is hours or decades off
  Milliseconds window{0};
  Milliseconds probation{0};
  std::string layout;
  FaultRates rates;
  std::array<uint64_t, static_cast<size_t>(Fault::kCount)> weights{};
  std::array<uint64_t, static_cast<size_t>(RegistryFault::kCount)> registry_weights{};
  uint64_t session_ends_in = 1;  // losses of data, on average: the others it outlives

  uint32_t racks() const { return uint32_t{1} << rack_bits; }
  Fault Pick(SeededEntropy& dice) const;
  RegistryFault PickForRegistry(SeededEntropy& dice) const;
  static SimSizes Draw(SeededEntropy& dice);
  // There is more of what strikes, so that an error shows which only that can show.
  void Favour(Fault fault) { weights[static_cast<size_t>(fault)] += 30; }
  std::string text() const;
};

// How far a clock that was never set, or set wrong, is off: hours, days or decades, either way.
Milliseconds DrawOff(SeededEntropy& dice);

}  // namespace firn
