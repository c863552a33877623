#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "registry/seam/async_registry.h"

namespace firn {

// The first use of a name. In a cluster whose settings say so (CounterSetting), an undefined name
// becomes a counter: a segment tag with buffer = owner, as if `firn tags create` had made it.
//
//   /counters   {"created":17}: number of tags created in this way
//
// One multi creates the tag and counts it, so servers together create at most kCountersMax in an
// era. It also checks root node, settings and era. So it fails if the data have changed since they
// were read.
//
// Sharp edge: if the tag's node is lost, or its ledger goes back, and no running server remembers
// the tag, its numbers begin at `start` again.
struct FirstUse {
  enum class State : uint8_t {
    kExists,      // the tag is defined
    kUndefined,   // it is not, and this name is not created
    kMissing,     // it is not; `writes` create it
    kOtherEra,    // names were created until the cluster lost data
    kFull,        // kCountersMax names were created
    kUnanswered,  // the registry's answers are missing or unusable
  };

  State state = State::kUnanswered;
  std::vector<Write> writes{};
};

inline constexpr const char* kCountersPath = "/counters";
inline constexpr int64_t kCountersMax = 5'000;

// Reads what a use of the name means now.
Task<FirstUse> ReadFirstUse(AsyncRegistry* registry, std::string name);

// Returns the number of names that were created so.
Result<int64_t> ReadCountersCreated(const Result<Node>& node);

}  // namespace firn
