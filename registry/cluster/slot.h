#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "registry/cluster/nonce.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The place of one machine id in the registry: rack and worker, which RackSplit combines into the
// number. A value.
struct Slot {
  uint32_t rack = 0;
  uint32_t worker = 0;

  friend constexpr auto operator<=>(const Slot&, const Slot&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Slot& slot) {
    return out << "rack " << slot.rack << " worker " << slot.worker;
  }
};

// "rack 1 worker 7", for messages.
std::string SlotText(Slot slot);

// Paths below the cluster's root.
inline constexpr const char* kMetaPath = "/";
inline constexpr const char* kMachinesPath = "/machines";
inline constexpr const char* kClockPath = "/clock";  // set to learn the registry's own time
std::string RackPath(uint32_t rack);
std::string SlotPath(Slot slot);
std::string LivePath(Slot slot);

// Versions and creations are small numbers, which recur in a registry that has lost its data. An
// era never recurs: it is a random name, drawn whenever a cluster is made or restored, stored in
// the root node and as the name of an empty node. Every multi that is based on earlier reads also
// checks for that node. So it takes effect only in the data for which it was made, even if its
// process slept meanwhile and has not noticed that its connection leads to other data.
inline constexpr const char* kEraPrefix = "era-";  // of a name below the root node
std::string EraPath(const Nonce& era);
Write EraCheck(const Nonce& era);

}  // namespace firn
