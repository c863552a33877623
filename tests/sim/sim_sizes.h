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
  kDieSoon,  // dies during a write to the disk or registry
  kReboot,
  kStop,
  kPauseInStep,
  kPause,
  kCut,
  kClock,
  kDisk,
  kRegistry,
  kCopy,  // copies the running machine
  kCount,
};

// Faults of the registry as a whole.
enum class RegistryFault {
  kOutage,   // begins or ends
  kExpire,   // ends one session
  kBackup,   // makes a backup, which is harmless
  kLoss,     // of data
  kDelete,   // deletes a slot's record
  kRepeat,   // re-creates the registry with the versions that a holder remembers
  kRestore,  // restores a healthy cluster
  kClock,    // the registry's clock steps, drifts or is corrected
  kInit,     // wipes the registry, and an operator creates a cluster as if none had existed
  kCount,
};

// The time at which the simulation begins.
inline constexpr WallMs kSimStart{1'750'000'000'000};

// The size of a seed's world and the frequencies of its faults. They are drawn from the seed,
// because some errors show only at some sizes.
struct SimSizes {
  int hosts = 1;       // 1 to 5
  uint32_t slots = 1;  // 1 to 6 per rack
  int rack_bits = 0;   // 0 to 2
  int steps = 0;
  bool wraps = false;        // versions of nodes start close to where they wrap
  bool generations = false;  // a copied machine detects that it is a copy
  bool copies = false;       // running machines are copied
  bool tags = false;         // processes also follow tags
  bool strict = false;       // no ids are issued while the wall clock is behind
  bool probes = false;       // checks readiness in each round of a host
  bool steady = false;       // at the end, the registry's clock is set wrong once more
  bool strides = false;      // seconds pass between steps, so that days are simulated
  uint64_t fault_every = 0;  // average number of steps between two faults
  uint64_t start_every = 1;  // average number of chances until a stopped host starts
  uint64_t off_one_in = 0;   // one boot in this number has a clock that is hours or decades off
  Milliseconds window{0};
  Milliseconds probation{0};
  std::string layout;
  FaultRates rates;
  std::array<uint64_t, static_cast<size_t>(Fault::kCount)> weights{};
  std::array<uint64_t, static_cast<size_t>(RegistryFault::kCount)> registry_weights{};
  uint64_t session_ends_in = 1;  // sessions end in one of this number of losses of data

  uint32_t racks() const { return uint32_t{1} << rack_bits; }
  Fault Pick(SeededEntropy& dice) const;
  RegistryFault PickForRegistry(SeededEntropy& dice) const;
  static SimSizes Draw(SeededEntropy& dice);
  // Makes a fault more frequent, to expose an error that only this fault exposes.
  void Favour(Fault fault) { weights[static_cast<size_t>(fault)] += 30; }
  std::string text() const;
};

// Returns the error of a clock that was never set, or was set wrong: hours, days or decades, in
// either direction.
Milliseconds DrawOff(SeededEntropy& dice);

}  // namespace firn
