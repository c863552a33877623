#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Knows which process issued the ids of each machine id, and judges what the registry says of it
// when a process has resumed a claim: `firn who` must not name another one.
class HolderBook {
 public:
  // `claim`: its number, over all processes; the times are those of whole ticks.
  void Note(MachineId machine, int64_t pid, int64_t claim, WallMs first, WallMs end);

  // A process has replaced the record `before`, whose claim it resumed, by `after`; `past` is the
  // node beside it.
  void JudgeResumed(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                    const std::optional<Node>& past) const;

 private:
  struct Issued {
    int64_t pid;
    int64_t claim;
    WallMs first, end;
  };
  std::unordered_map<uint32_t, std::vector<Issued>> issued_;  // by machine id
};

}  // namespace firn
