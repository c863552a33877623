#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>

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

}  // namespace firn
