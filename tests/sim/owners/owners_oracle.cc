#include "tests/sim/owners/owners_oracle.h"

#include <algorithm>
#include <string>

#include "tests/sim/violation.h"

namespace firn {

void OwnersOracle::Answer(size_t partition, int64_t number, int64_t beyond, bool of_copies,
                          bool beside_rollback) {
  Partition& known = answered_[partition];
  ++count_;
  const bool is_new = known.numbers.insert(number).second;
  const std::string which =
      "number " + std::to_string(number) + " of partition " + std::to_string(partition);
  if (!of_copies && !is_new) throw Violation(3, which + " was issued twice");
  if (!of_copies && !beside_rollback) {
    if (number <= beyond) {
      throw Violation(2, which + " was taken after the answer " + std::to_string(beyond));
    }
    known.of_others = std::max(known.of_others, number);
  }
  known.highest = std::max(known.highest, number);
}

}  // namespace firn
