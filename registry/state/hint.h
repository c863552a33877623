#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/cluster/slot.h"
#include "registry/state/state_folder.h"

namespace firn {

// Which slot a server held last, so that machines keep their ids. It carries no permission at all:
// a copied, old or invented hint only decides what is tried first, and whose cluster this folder
// belongs to.
struct Hint {
  uint32_t machine = 0;  // for the reader's eye; worker and rack decide
  Slot slot;
  std::string uuid;    // of the cluster
  std::string layout;  // Layout::text()

  friend bool operator==(const Hint&, const Hint&) = default;
};

// The file's text, Java properties that any editor shows, with \ before a : or = in a value:
//
//   # Firn: which machine id to try first. Holds no permission; safe to copy or delete.
//   format=2
//   machineId=5
//   worker=1
//   rack=1
//   cluster=6f1b...
//   layout=firn
inline constexpr uint32_t kHintFormat = 2;
std::string FormatHint(const Hint& hint);

// Keys that it does not know are a later version's, and passed over. kInvalid with a sentence: of
// another format. kCorrupt with a reason when something is missing, twice or absurd.
Result<Hint> ParseHint(std::string_view text);

}  // namespace firn
