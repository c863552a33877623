#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// Looks once more, where tags are defined, for a name that nobody here knows: a tag that has just
// been made is on its way to this server. Thread-safe; must not block.
class TagSeeker {
 public:
  enum class Found : uint8_t {
    kNothing,     // there is no such tag, as of a moment after the call came
    kLooking,     // ask again, after having resolved the name again
    kUnanswered,  // nobody can tell now
  };

  virtual ~TagSeeker() = default;

  // `ticket` is the call's own: 0 when it asks for the first time, and afterwards as it was left.
  virtual Found Seek(std::string_view name, uint64_t& ticket) = 0;
};

}  // namespace firn
