#pragma once

#include <cstdint>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// The split of a machine id: machine = worker << rack_bits | rack. A literal value.
//
//     9                 2 1   0
//     +------------------+-----+
//     |    worker (8)    |rack |     10 machine bits, the default: worker 1 in rack 1 is 0000000101
//     +------------------+-----+
class RackSplit {
 public:
  // Two rack bits if the layout has all ten machine bits, otherwise none.
  static constexpr RackSplit Default(const Layout& layout) {
    const int machine_bits = layout.machine().width;
    return RackSplit(machine_bits, machine_bits == Layout::kMachineBitsMax ? 2 : 0);
  }

  // kInvalid if `rack_bits` is negative or more than the layout's machine bits.
  static Result<RackSplit> Make(const Layout& layout, int rack_bits);

  constexpr int rack_bits() const { return rack_bits_; }
  constexpr uint32_t racks() const { return uint32_t{1} << rack_bits_; }
  constexpr uint32_t workers() const { return uint32_t{1} << (machine_bits_ - rack_bits_); }

  constexpr uint32_t WorkerOf(MachineId machine) const { return machine.value() >> rack_bits_; }
  constexpr uint32_t RackOf(MachineId machine) const { return machine.value() & (racks() - 1); }

  // kInvalid names the worker and the rack if they are out of range.
  Result<MachineId> Join(uint64_t worker, uint64_t rack) const;

  friend constexpr bool operator==(const RackSplit&, const RackSplit&) = default;

 private:
  constexpr RackSplit(int machine_bits, int rack_bits)
      : machine_bits_(machine_bits), rack_bits_(rack_bits) {}

  int machine_bits_;
  int rack_bits_;
};

// A layout and the split of its machine ids.
struct LayoutChoice {
  Layout layout;
  RackSplit split;
};
// Parses a layout's text. -1 rack bits: the layout's default.
Result<LayoutChoice> ParseLayoutChoice(const std::string& layout, int rack_bits);

}  // namespace firn
