#pragma once

#include <cstddef>
#include <cstdint>
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
//                                     "end_ms":..}, ...]}                         oldest first
//
// Nothing depends on it: a list that cannot be read is replaced by a new one.

// One holding of a slot. The ticks of its ids are in [first, end).
struct PastHolder {
  std::string owner;
  std::string host;
  int64_t pid = 0;
  WallMs first;
  WallMs end;

  // Returns this holding, ended at `successor` if another process resumes or claims there.
  PastHolder Until(WallMs successor) const;

  friend bool operator==(const PastHolder&, const PastHolder&) = default;
};

// Returns the holding in a record.
PastHolder HolderIn(const SlotRecord& record);

// The last holdings of one slot. A value; thread-compatible.
class PastHolders {
 public:
  static constexpr size_t kHoldersMax = 100;
  static constexpr size_t kBytesMax = 128 << 10;  // of the text to parse
  static constexpr size_t kValuesMax = 8192;      // members and list items of the text to parse

  // kCorrupt, with a reason, if the text is not exactly such an object.
  static Result<PastHolders> Parse(std::string_view json);
  std::string Text() const;

  // Adds the newest holding and drops the oldest beyond kHoldersMax. Ignores an empty holding.
  void Add(PastHolder holder);

  // Oldest first.
  const std::vector<PastHolder>& holders() const { return holders_; }

  friend bool operator==(const PastHolders&, const PastHolders&) = default;

 private:
  std::vector<PastHolder> holders_;
};

std::string PastPath(Slot slot);

}  // namespace firn
