#include "common/id/rack_split.h"

#include "common/base/cat.h"
#include "common/base/faults.h"

namespace firn {

Result<RackSplit> RackSplit::Make(const Layout& layout, int rack_bits) {
  const int machine_bits = layout.machine().width;
  if (rack_bits < 0 || rack_bits > machine_bits) {
    return Invalid(Cat("rack_bits ", rack_bits, " is not in 0..", machine_bits,
                       ", the machine bits of the layout"));
  }
  return RackSplit(machine_bits, rack_bits);
}

Result<MachineId> RackSplit::Join(uint64_t worker, uint64_t rack) const {
  Faults faults;
  if (worker >= workers()) {
    faults.Add(Cat("worker ", worker, " is not in 0..", workers() - 1));
  }
  if (rack >= racks()) {
    faults.Add(Cat("rack ", rack, " is not in 0..", racks() - 1));
  }
  if (!faults.empty()) return std::move(faults).ToStatus();
  return MachineId(static_cast<uint32_t>(worker << rack_bits_ | rack));
}

Result<LayoutChoice> ParseLayoutChoice(const std::string& text, int rack_bits) {
  FIRN_ASSIGN(const Layout layout, Layout::Parse(text));
  if (rack_bits < 0) return LayoutChoice{layout, RackSplit::Default(layout)};
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, rack_bits));
  return LayoutChoice{layout, split};
}

}  // namespace firn
