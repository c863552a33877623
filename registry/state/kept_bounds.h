#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"

namespace firn {

// A slot's bound that the registry has acknowledged, and below which a program may issue ids by
// itself. Until that time no intact registry shows a lower bound of the slot, or another creation.
struct KeptBound {
  Slot slot{};
  Nonce era{};               // of the registry's data
  int64_t created_zxid = 0;  // of the slot's record
  WallMs bound{};
  Nonce claim{};        // zero: not recorded; then `version` and `lease` are not either
  int64_t version = 0;  // of the slot's record when it had this bound
  // One line with what the server needs to resume the claim's lease; empty: it has ended.
  std::string lease{};

  friend bool operator==(const KeptBound&, const KeptBound&) = default;
};

// The bounds that a server keeps on its disk, so that its next start notices a registry that has
// lost them, and resumes its leases. A value.
//
//   firn-leases 1 <uuid of the cluster, or -> [<boot id>]
//   <rack> <worker> <era> <created_zxid> <bound_ms> [<claim> <version> [<lease>]]
//   end <number of bounds>
struct KeptBounds {
  std::string uuid{};
  std::string boot{};  // of the machine on which they were written; empty: unknown
  std::vector<KeptBound> bounds{};

  // The highest bound; 0: there is none.
  WallMs highest() const;

  friend bool operator==(const KeptBounds&, const KeptBounds&) = default;
};

inline constexpr size_t kKeptBoundsBytesMax = 1 << 24;

std::string FormatKeptBounds(const KeptBounds& kept);
// kCorrupt, with a reason, if the text does not have exactly this form.
Result<KeptBounds> ParseKeptBounds(std::string_view text);

}  // namespace firn
