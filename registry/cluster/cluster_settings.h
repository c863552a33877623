#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Settings of a cluster beside its root node, whose version claims and ledgers rely on: a change of
// them ends no claim.
//
//   /settings   {"claim_window_ms":5400000}
struct ClusterSettings {
  // The largest --claim_window_ms of any server that has claimed: a holder that is cut off may
  // have a bound so far ahead. Recorded before the first claim with it.
  Milliseconds window = kUsualWindow;
  std::string others{};  // members of later versions

  // Smaller windows are not recorded.
  static constexpr Milliseconds kUsualWindow{600'000};
  static constexpr Milliseconds kWindowMax{int64_t{366} * 86'400'000};
};

inline constexpr const char* kSettingsPath = "/settings";

std::string FormatClusterSettings(const ClusterSettings& settings);
Result<ClusterSettings> ParseClusterSettings(std::string_view json);

// Returns the settings; the usual ones if the node is missing or unreadable.
Result<ClusterSettings> ReadClusterSettings(BlockingCoordinator& registry);

// Raises the recorded window to `window`, within an era. The blocking one is for restores.
Task<Status> RaiseWindow(AsyncRegistry* registry, Milliseconds window, Nonce era);
Status RaiseWindow(BlockingCoordinator& registry, Milliseconds window, const Nonce& era);

}  // namespace firn
