#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"

namespace firn {

// Knows which process issued the ids of each machine id, and judges what the registry says of it
// when the next holding begins: `firn who` must not name another one.
class HolderBook {
 public:
  // `claim`: its number, over all processes; the times are those of whole ticks.
  void Note(MachineId machine, int64_t pid, int64_t claim, WallMs first, WallMs end);

  // One of two copies has ended before it could write that it held the claim.
  void Forget(int64_t claim);

  // A record of the machine id names this process.
  void NoteRecorded(MachineId machine, int64_t pid) { recorded_[machine.value()].insert(pid); }

  // A process has replaced the record `before` by `after`; `past` is the node beside it. A claim
  // that was not resumed cannot know processes that no record named.
  void JudgeBegun(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                  const std::optional<Node>& past, bool resumed) const;

 private:
  struct Issued {
    int64_t pid;
    int64_t claim;
    WallMs first, end;
  };
  std::unordered_map<uint32_t, std::vector<Issued>> issued_;  // by machine id
  std::unordered_map<uint32_t, std::set<int64_t>> recorded_;  // by machine id
};

}  // namespace firn
