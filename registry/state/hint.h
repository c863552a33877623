#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"
#include "registry/state/state_folder.h"

namespace firn {

// The slot that a server held last, so that machines keep their ids. It contains no permission: a
// copied, old or invented hint only affects which slot is tried first, and which cluster the folder
// belongs to.
struct Hint {
  uint32_t machine = 0;  // for human readers; worker and rack decide
  Slot slot;
  std::string uuid;    // of the cluster
  std::string layout;  // Layout::text()
  // The registry's data at this server's last read. If data of the same era have an older root
  // version, or a bound of the slot below `last`, they were restored from a backup.
  Nonce era{};               // zero: not recorded
  int64_t root_version = 0;  // of the root node, within the era
  WallMs last{};             // the highest id time issued in the slot, at most a minute ago
  // The claim of the slot, and the version and creation of its record as acknowledged. If a newer
  // version ended this claim, no data were lost: a copy of this server may have released it.
  Nonce claim{};  // zero: not recorded
  int64_t version = 0;
  int64_t created_zxid = 0;

  friend bool operator==(const Hint&, const Hint&) = default;
};

// The file's text: Java properties, with \ before a : or = in a value:
//
//   # Firn: which machine id to try first. Holds no permission; safe to copy or delete.
//   format=2
//   machineId=5
//   worker=1
//   rack=1
//   cluster=6f1b...
//   layout=firn
//   era=9e10...              these three only where the era is recorded
//   rootVersion=3
//   lastMs=1795582362773
//   claim=3c51...            these three only where the claim is recorded
//   slotVersion=41
//   slotCreated=17
inline constexpr uint32_t kHintFormat = 2;
std::string FormatHint(const Hint& hint);

// Ignores unknown keys, which belong to later versions. kInvalid with a sentence: another format.
// kCorrupt with a reason: a key is missing, duplicated or has an invalid value.
Result<Hint> ParseHint(std::string_view text);

}  // namespace firn
