#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// Looks up a name that this server does not know where tags are defined: the definition of a new
// tag may not have arrived yet. Thread-safe; must not block.
class TagSeeker {
 public:
  enum class Found : uint8_t {
    kNothing,     // there is no such tag, by a reading after the call arrived
    kLooking,     // retry, after resolving the name again
    kUnanswered,  // the lookup has no answer now
    kTooMany,     // too many lookups are in progress
  };

  virtual ~TagSeeker() = default;

  // `ticket` belongs to the call: 0 at first, afterwards the value that the previous Seek stored.
  virtual Found Seek(std::string_view name, uint64_t& ticket) = 0;
};

}  // namespace firn
