#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"
#include "registry/state/grant_file.h"

namespace firn {

// Records which process issued the ids of each machine id. When the next claim begins, checks the
// holders in the registry: `firn who` must not name another process.
class HolderBook {
 public:
  // Records issued ids. `claim`: number of the claim, over all processes. The times are at tick
  // boundaries.
  void Note(MachineId machine, int64_t pid, int64_t claim, WallMs first, WallMs end);

  // Removes a claim: one of two copies has ended before it could record that it held the claim.
  void Forget(int64_t claim);

  // Records that a record of the machine id names this process.
  void NoteRecorded(MachineId machine, int64_t pid) { recorded_[machine.value()].insert(pid); }
  // Forgets which processes the records named, because the registry may have lost data. The next
  // change of a record that still exists names its process again.
  void NoteLoss() { recorded_.clear(); }

  // Checks the holders when a process has replaced the record `before` by `after`. `past`: the node
  // of earlier holders. A claim that was not resumed knows only the processes that a record or its
  // grant (`listed`) names.
  void JudgeBegun(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                  const std::optional<Node>& past, bool resumed,
                  const std::vector<OfflineHolder>& listed) const;

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
