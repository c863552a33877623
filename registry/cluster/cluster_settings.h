#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// Settings of a cluster beside its root node, whose version claims and ledgers rely on: a change of
// them ends no claim.
//
//   /settings   {"claim_window_ms":5400000,"lease_share":70,
//                "counters":{"era":"..","start":1,"prefixes":"order:,user:"}}

// The name of CounterSetting in commands: default_strategy=counter.
inline constexpr std::string_view kCounterStrategy = "counter";

// Undefined names become counters at their first use: see first_use.h.
struct CounterSetting {
  // Counts under this era only: after a loss of data, the numbers of lost counters are unknown.
  Nonce era{};
  int64_t start = 1;       // first number of each
  std::string prefixes{};  // of these names only, separated by commas; empty: all names

  bool Covers(std::string_view name) const;
  friend bool operator==(const CounterSetting&, const CounterSetting&) = default;
};

// Returns kInvalid unless each prefix can begin a tag's name.
Status CheckPrefixes(std::string_view prefixes);

struct ClusterSettings {
  // The largest --claim_window_ms of any server that has claimed: a holder that is cut off may
  // have a bound so far ahead. Recorded before the first claim with it.
  Milliseconds window = kUsualWindow;
  // The part of each rack's machine ids that is for leases, in percent; empty: as in the root node.
  std::optional<int64_t> lease_share{};
  std::optional<CounterSetting> counters{};  // empty: undefined names stay undefined
  std::string others{};                      // members of later versions
  int64_t version = kNoNode;                 // of the node

  int64_t LeaseShareUnder(const ClusterMeta& root) const {
    return lease_share.value_or(root.lease_share);
  }
  friend bool operator==(const ClusterSettings&, const ClusterSettings&) = default;

  static constexpr int64_t kNoNode = -1;  // the node is missing or unreadable
  // Smaller windows are not recorded.
  static constexpr Milliseconds kUsualWindow{600'000};
  static constexpr Milliseconds kWindowMax{int64_t{366} * 86'400'000};
};

inline constexpr const char* kSettingsPath = "/settings";

std::string FormatClusterSettings(const ClusterSettings& settings);
Result<ClusterSettings> ParseClusterSettings(std::string_view json);

// Return the settings, or the defaults if the node is missing or unreadable. SettingsIn gets the
// result of reading the node.
Result<ClusterSettings> ReadClusterSettings(BlockingCoordinator& registry);
Result<ClusterSettings> SettingsIn(const Result<Node>& node);

// Raises the recorded window to `window`, within an era, and returns the settings.
Task<Result<ClusterSettings>> RaiseWindow(AsyncRegistry* registry, Milliseconds window, Nonce era);

// Changes the settings within an era, and returns them. kConflict: they or the era changed
// meanwhile. Writes nothing if `change` does nothing.
Result<ClusterSettings> ChangeSettings(BlockingCoordinator& registry, const Nonce& era,
                                       const std::function<void(ClusterSettings&)>& change);

}  // namespace firn
