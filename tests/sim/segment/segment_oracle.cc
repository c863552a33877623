#include "tests/sim/segment/segment_oracle.h"

#include <algorithm>

#include "tests/sim/segment/segment_violation.h"

namespace firn {

void NumberOracle::Record(const std::string& tag, int64_t number, int64_t beyond) {
  Tag& known = tags_[tag];
  if (!known.numbers.insert(number).second) {
    throw SegmentViolation("number " + std::to_string(number) + " of tag " + tag +
                           " was issued twice");
  }
  if (number <= beyond) {
    throw SegmentViolation("number " + std::to_string(number) + " of tag " + tag +
                           " went to a call that began after " + std::to_string(beyond) +
                           " had been issued");
  }
  if (number < kClockIds) {
    known.highest = std::max(known.highest, number);
  } else if (known.odd.value_or(number % 2 != 0) != (number % 2 != 0)) {
    throw SegmentViolation("tag " + tag + " was served both plain and obfuscated");
  } else {
    known.odd = number % 2 != 0;
  }
  ++given_;
}

void NumberOracle::RecordText(const std::string& tag, const std::string& text) {
  Tag& known = tags_[tag];
  if (known.text.value_or(text) != text) {
    throw SegmentViolation("a text of tag " + tag + " was issued as " + *known.text + " and as " +
                           text);
  }
  known.text = text;
}

}  // namespace firn
