#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"

namespace firn {

// The holders of a slot and their periods: shows years later which process issued an id. The record
// names its last holder, also after a release. Earlier holders are stored next to it, added by the
// write that puts another name into the record:
//
//   /machines/<rack>/<worker>/past   {"holders":[{"owner":..,"host":..,"pid":..,"first_ms":..,
//                                     "end_ms":.., "perhaps_ms":.., "nonce":.., "version":..},
//                                    ...]}                                        oldest first
//
// No claim depends on it: a list that cannot be parsed is replaced by a new one. A server that
// starts with a copied state folder would freeze the cluster if the list lacks the end of a lease.

// One holding of a slot. The ticks of its ids are in [first, end).
struct PastHolder {
  std::string owner;
  std::string host;
  int64_t pid = 0;
  WallMs first;
  WallMs end;
  // The registry lost data and was restored: ids from `end` on, below this time, may be of this
  // holder or of one that is not known. 0: there are none.
  WallMs perhaps{};
  // The claim, and the record's version when it ended; missing if an earlier version wrote it.
  Nonce nonce{};
  std::optional<int64_t> version{};

  WallMs bound() const { return std::max(end, perhaps); }
  bool is_empty() const { return bound() <= first; }
  // Returns false for an empty holding, unless it shows at which version a claim ended.
  bool is_needed() const { return !is_empty() || (!nonce.zero() && version); }
  // Returns this holding, ended at `successor` if another process resumes or claims there.
  PastHolder Until(WallMs successor) const;

  friend bool operator==(const PastHolder&, const PastHolder&) = default;
};

// Returns the holding in a record, read at that version in data of that era. A record from before a
// restore is certain only up to its writer's id time: the lost data may have contained a release,
// and other holders.
PastHolder HolderIn(const SlotRecord& record, const Nonce& era,
                    std::optional<int64_t> version = std::nullopt);

// The last holdings of one slot. A value; thread-compatible.
class PastHolders {
 public:
  static constexpr size_t kHoldersMax = 100;
  static constexpr size_t kBytesMax = 128 << 10;  // of the text to parse
  static constexpr size_t kValuesMax = 8192;      // members and list items of the text to parse

  // kCorrupt, with a reason, if the text is not exactly such an object.
  static Result<PastHolders> Parse(std::string_view json);
  std::string Text() const;

  // Adds the newest holding, and drops the oldest beyond kHoldersMax: an empty one if there is one.
  // Ignores one that is not needed.
  void Add(PastHolder holder);

  // Oldest first.
  const std::vector<PastHolder>& holders() const { return holders_; }

  friend bool operator==(const PastHolders&, const PastHolders&) = default;

 private:
  std::vector<PastHolder> holders_;
};

std::string PastPath(Slot slot);

}  // namespace firn
