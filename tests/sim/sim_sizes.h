#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "tests/support/registry/faults.h"

namespace firn {

// Faults of hosts.
enum class Fault {
  kKill,
  kDieSoon,  // during a write to disk or registry
  kReboot,
  kStop,
  kPauseInStep,
  kPause,
  kCut,
  kClock,
  kDisk,
  kRegistry,
  kCopy,  // of the whole running machine
  kCount,
};

// Faults of the registry as a whole.
enum class RegistryFault {
  kOutage,   // begins or ends
  kExpire,   // one session
  kBackup,   // a backup is made, which is harmless
  kLoss,     // of data
  kDelete,   // of one slot's record
  kRepeat,   // re-created, up to the versions that a holder remembers
  kRestore,  // of a healthy cluster
  kClock,    // its clock steps, drifts or is corrected
  kInit,     // wiped, and an operator creates a cluster as if there had been none
  kCount,
};

// The time at which the simulation begins.
inline constexpr WallMs kSimStart{1'750'000'000'000};

// The size of a seed's world and the frequencies of its faults, drawn from the seed: a fixed size
// would hide errors that only another one shows.
struct SimSizes {
  int hosts = 1;       // 1 to 5
  uint32_t slots = 1;  // 1 to 6 per rack
  int rack_bits = 0;   // 0 to 2
  int steps = 0;
  bool wraps = false;        // versions of nodes start close to where they wrap
  bool generations = false;  // a copied machine sees that it is one
  bool copies = false;       // running machines are copied
  bool tags = false;         // processes follow tags beside their claims
  bool strict = false;       // nothing is issued while the wall clock is behind
  bool probes = false;       // readiness is checked in each round of a host
  bool steady = false;       // at the end the registry's clock is wrong once more
  bool strides = false;      // seconds pass between steps, so that days are simulated
  uint64_t fault_every = 0;  // steps, on average
  uint64_t start_every = 1;  // chances until a host that is down starts again
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
  // Makes the relevant faults more frequent, so that an error shows that only they can show.
  void Favour(Fault fault) { weights[static_cast<size_t>(fault)] += 30; }
  std::string text() const;
};

// How far a clock that was never set, or was set wrong, is off: hours, days or decades, either way.
Milliseconds DrawOff(SeededEntropy& dice);

}  // namespace firn
