#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

#include "registry/cluster/nonce.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The place in the registry that stands for one machine id: worker and rack, which RackSplit joins
// to the number. A value.
struct Slot {
  uint32_t rack = 0;
  uint32_t worker = 0;

  friend constexpr auto operator<=>(const Slot&, const Slot&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Slot& slot) {
    return out << "rack " << slot.rack << " worker " << slot.worker;
  }
};

// "rack 1 worker 7", for sentences.
std::string SlotText(Slot slot);

// Where things are, below the cluster's root.
inline constexpr const char* kMetaPath = "/";
inline constexpr const char* kMachinesPath = "/machines";
inline constexpr const char* kClockPath = "/clock";  // set to learn the registry's own time
std::string RackPath(uint32_t rack);
std::string SlotPath(Slot slot);
std::string LivePath(Slot slot);

// Versions and creations are small numbers, and a registry that lost its data counts through them
// again. The era does not come again: a name drawn at random whenever a cluster is made or
// restored, which the root node tells and one empty node bears. So every multi that builds on what
// was read asks for that node as well: it takes effect in no other data than it was made for, even
// when its maker slept meanwhile and has not heard that his connection leads elsewhere now.
inline constexpr const char* kEraPrefix = "era-";  // of a name below the root node
std::string EraPath(const Nonce& era);
Write EraCheck(const Nonce& era);

}  // namespace firn
