#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// Looks up a name that is unknown here once more, where tags are defined: the definition of a new
// tag may not have arrived at this server yet. Thread-safe; must not block.
class TagSeeker {
 public:
  enum class Found : uint8_t {
    kNothing,     // there is no such tag, as of a moment after the call arrived
    kLooking,     // ask again, after resolving the name again
    kUnanswered,  // the lookup cannot be answered now
    kTooMany,     // too many names are looked up to look up this one
  };

  virtual ~TagSeeker() = default;

  // `ticket` belongs to the call: 0 in its first request, and afterwards the value that was left.
  virtual Found Seek(std::string_view name, uint64_t& ticket) = 0;
};

}  // namespace firn
