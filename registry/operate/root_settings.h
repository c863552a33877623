#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/rack_split.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"

namespace firn {

// Consecutive machine ids that another system uses.
struct ReservedIds {
  MachineId first;
  MachineId last;
  std::string used_by{};

  friend bool operator==(const ReservedIds&, const ReservedIds&) = default;
};

// Converts reservations to one argument of a command, `0-1=old%20system,7=x`, and back. kInvalid
// names the part that is not a range with a name.
std::string FormatReserved(const std::vector<ReservedIds>& reserved);
Result<std::vector<ReservedIds>> ParseReserved(std::string_view word);

// kInvalid names a range that the layout does not have, or a name of a system that no record holds.
Status CheckReserved(const std::vector<ReservedIds>& reserved, const RackSplit& split);

// The number of workers in each rack that includes all these machine ids.
Result<uint32_t> WorkersWith(const std::vector<ReservedIds>& reserved, const RackSplit& split);

// A cluster's settings without its tags: the settings in the root node, and the machine ids that no
// server may claim. A server keeps a copy in its state folder, from which a restore can re-create a
// lost cluster. A value.
struct RootSettings {
  std::string uuid{};
  std::string layout{};
  int rack_bits = 0;
  uint32_t workers = 0;  // machine ids of each rack; 0: not recorded
  std::string default_strategy{};
  WallMs ids_since{};  // 0: not recorded
  int64_t lease_share = ClusterMeta::kLeaseShare;
  Milliseconds window = ClusterSettings::kUsualWindow;  // largest of a claim; 0: not recorded
  // ClusterSettings::version, which orders shares within the era.
  int64_t settings_version = kNotRecorded;
  Nonce era{};
  int64_t version = 0;  // of the root node, within the era
  // Of the node above the racks, which each change of reservations sets, within the era.
  int64_t machines_version = kNotRecorded;
  WallMs floor{};
  WallMs era_began{};                   // by the registry's clock; 0: not recorded
  std::vector<ReservedIds> reserved{};  // in order
  std::vector<MachineId> retired{};     // in order; without the reserved ones

  static constexpr int64_t kNotRecorded = INT64_MIN;

  // Adds a machine id by its record, unless it can be claimed. Call in order.
  void Add(MachineId machine, const SlotRecord& record);

  // Whether this is an earlier state than `other` of the same data. A restore begins an era, with
  // a higher floor unless it did not know the state before.
  bool OlderThan(const RootSettings& other) const {
    if (uuid != other.uuid) return false;
    if (era != other.era) return floor < other.floor && era_began <= other.era_began;
    return std::tie(version, settings_version) < std::tie(other.version, other.settings_version) ||
           machines_version < other.machines_version;
  }

  // Returns the time that ids may have reached by `now`: after a restore, id clocks start at the
  // floor, ahead of the wall clock, and stay ahead. 0: ids are not ahead.
  WallMs IdsBy(WallMs now) const;

  friend bool operator==(const RootSettings&, const RootSettings&) = default;
};

// Returns the settings of a root node and those beside it, without machine ids.
RootSettings SettingsOf(const ClusterMeta& meta, int64_t version, const ClusterSettings& beside);

// The text in a state folder, one JSON object. kCorrupt: it does not parse.
std::string FormatRootSettings(const RootSettings& settings);
Result<RootSettings> ParseRootSettings(std::string_view json);
// Reads such a file. kNotFound, or kCorrupt also if it is of another cluster. Blocks.
Result<RootSettings> ReadRootSettings(const std::string& path, const std::string& uuid);
inline constexpr size_t kRootSettingsBytesMax = 4 << 20;

}  // namespace firn
