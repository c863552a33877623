#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// Looks up an unknown name in the place where tags are defined: a new tag's definition may not have
// arrived yet, or the tag's first use may create it. Thread-safe; must not block.
class TagSeeker {
 public:
  enum class Found : uint8_t {
    kNothing,     // there is no such tag; read after the call arrived
    kLooking,     // retry, after resolving the name again
    kUnanswered,  // the lookup has no answer now
    kLater,       // the name can be neither looked up nor created now
    // There is no such tag. Its first use would create it, but:
    kNoRight,   // this call lacks the right
    kOtherEra,  // the cluster was restored after creation was permitted
    kFull,      // the maximum number of tags created by first use is reached
  };

  virtual ~TagSeeker() = default;

  // `ticket` belongs to the call: 0 at first, afterwards the value that the previous Seek stored.
  // `may_create`: creates the tag if the cluster's settings permit it.
  virtual Found Seek(std::string_view name, uint64_t& ticket, bool may_create) = 0;
};

}  // namespace firn
