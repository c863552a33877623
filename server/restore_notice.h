#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/units.h"

namespace firn {

// Decides when a server logs the command that restores its cluster.
//
//  1. Not before the command has been required for kLasting: `firn restore --again` freezes an
//     intact cluster for a moment. A break of kLasting resets that time. A shorter break does not,
//     since a registry may fail to answer for a moment.
//  2. A server that has just started may soon know the cluster's settings. It logs a command with
//     placeholders for them only after kUnread.
//  3. Once every kLogEvery, because the command's numbers change constantly.
class RestoreNotice {
 public:
  static constexpr Milliseconds kLasting{3'000};
  static constexpr Milliseconds kUnread{10'000};
  static constexpr Milliseconds kLogEvery{60'000};

  // Call often. Returns the command to log now; empty: none. `required`: whether a restore is
  // required. `command` returns the command, empty if it is no longer required; it may be slow, and
  // is called at most once a second.
  std::string Take(BootMs now, bool required, const std::function<std::string()>& command);

 private:
  std::optional<BootMs> since_;  // when it became required; empty: it is not
  BootMs required_at_;           // when it was last required
  BootMs next_;                  // earliest time of the next request for the command
};

}  // namespace firn
