#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/entropy.h"
#include "common/units.h"
#include "registry/faults.h"

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
  kCount,
};

// How big a seed's world is and how often what goes wrong in it, drawn from the seed: one size
// hides the errors of another.
struct SimSizes {
  int hosts = 1;       // 1 to 5
  uint32_t slots = 1;  // 1 to 6
  int steps = 0;
  uint64_t fault_every = 0;  // steps, on average
  uint64_t start_every = 1;  // chances, until a host that is down comes back
  Milliseconds window{0};
  Milliseconds probation{0};
  std::string layout;
  FaultRates rates;
  std::array<uint64_t, static_cast<size_t>(Fault::kCount)> weights{};
  std::array<uint64_t, static_cast<size_t>(RegistryFault::kCount)> registry_weights{};
  uint64_t session_ends_in = 1;  // losses of data, on average: the others it outlives

  Fault Pick(SeededEntropy& dice) const;
  RegistryFault PickForRegistry(SeededEntropy& dice) const;
  static SimSizes Draw(SeededEntropy& dice);
  std::string text() const;
};

}  // namespace firn
