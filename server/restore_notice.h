#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/units.h"

namespace firn {

// Decides when a server logs the command that restores its cluster.
//
//  1. Not before the command has been required for kLasting: `firn restore --again` freezes an
//     intact cluster for a moment. The time counts again after a break of kLasting. A shorter break
//     may be a registry that does not answer each time.
//  2. Once every kLogEvery.
class RestoreNotice {
 public:
  static constexpr Milliseconds kLasting{3'000};
  static constexpr Milliseconds kLogEvery{60'000};

  // Call often. Returns the command to log now; empty: none. `required`: whether a restore is.
  // `command` returns the command, empty if it is not required any more; called at most once a
  // second.
  std::string Take(BootMs now, bool required, const std::function<std::string()>& command);

 private:
  std::optional<BootMs> since_;  // when it became required; empty: it is not
  BootMs required_at_;           // when it was last required
  BootMs next_;                  // earliest time of the next request for the command
};

}  // namespace firn
