#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/id/layout.h"
#include "tests/drill/claimant/journal.h"

namespace firn {

// Checks the ids of a cluster for duplicates, from every run that any process got. Compares sorted
// runs by machine id and tick, so the cost of a run does not depend on its number of ids.
// Thread-compatible.
class DuplicateOracle {
 public:
  explicit DuplicateOracle(const Layout& layout) : layout_(layout) {}

  // Adds a run of `process`. kCorrupt for an id that is invalid in this layout.
  Status Add(const std::string& process, const IssuedRun& issued);

  struct Findings {
    int64_t ids = 0;
    int64_t duplicates = 0;       // ids that were issued before
    std::string first_duplicate;  // a sentence; empty without any
  };
  Findings Judge();

  // The machine ids under which each process issued, in order.
  const std::map<std::string, std::vector<MachineId>>& machines() const { return machines_; }

  // The longest time between two runs of one process, over all processes; 0 without runs.
  Milliseconds longest_stall() const { return longest_stall_; }

 private:
  // A run's part within one tick of one machine id.
  struct Piece {
    uint32_t machine;
    int64_t tick;
    uint64_t first;  // sequence
    uint64_t count;
    uint32_t process;
  };

  Status AddPieces(uint32_t process, const IdRun& run);
  std::string Sentence(const Piece& one, const Piece& other) const;

  const Layout layout_;
  std::vector<Piece> pieces_;
  std::vector<std::string> processes_;
  std::map<std::string, uint32_t> numbers_;
  std::map<std::string, BootMs> last_at_;
  std::map<std::string, std::vector<MachineId>> machines_;
  Milliseconds longest_stall_{0};
};

}  // namespace firn
