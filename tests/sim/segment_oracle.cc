#include "tests/sim/segment_oracle.h"

#include <algorithm>

#include "tests/sim/segment_violation.h"

namespace firn {

void NumberOracle::Record(const std::string& tag, int64_t number, int64_t beyond) {
  Tag& known = tags_[tag];
  if (!known.numbers.insert(number).second) {
    throw SegmentViolation("number " + std::to_string(number) + " of tag " + tag + " came twice");
  }
  if (number <= beyond) {
    throw SegmentViolation("number " + std::to_string(number) + " of tag " + tag +
                           " went to a call that began after " + std::to_string(beyond) +
                           " had been given out");
  }
  known.highest = std::max(known.highest, number);
  ++given_;
}

}  // namespace firn
