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

// Who held a slot, and which time of it: what tells years later which process issued an id. The
// record tells its last holder, also once he has released it; those before him stand beside it,
// added by the very write that puts another's name into the record:
//
//   /machines/<rack>/<worker>/past   {"holders":[{"owner":..,"host":..,"pid":..,"first_ms":..,
//                                     "end_ms":..}, ...]}                         oldest first
//
// Nothing hangs on it: whoever cannot read it begins a new one.

// One holding of a slot. Every id of it has its tick in [first, end).
struct PastHolder {
  std::string owner;
  std::string host;
  int64_t pid = 0;
  WallMs first;
  WallMs end;

  // What is left of it when somebody goes on with the slot from `successor` on.
  PastHolder Until(WallMs successor) const;

  friend bool operator==(const PastHolder&, const PastHolder&) = default;
};

// The holding that a record tells.
PastHolder HolderIn(const SlotRecord& record);

// The last holdings of one slot. A value; thread-compatible.
class PastHolders {
 public:
  static constexpr size_t kHoldersMax = 100;
  static constexpr size_t kBytesMax = 128 << 10;  // of the text that is read
  static constexpr size_t kValuesMax = 8192;        // the same, members and items of lists

  // kCorrupt, with a reason, for what is not exactly such an object.
  static Result<PastHolders> Parse(std::string_view json);
  std::string Text() const;

  // The newest; the oldest beyond kHoldersMax is forgotten. A holding without time is left out.
  void Add(PastHolder holder);

  // Oldest first.
  const std::vector<PastHolder>& holders() const { return holders_; }

  friend bool operator==(const PastHolders&, const PastHolders&) = default;

 private:
  std::vector<PastHolder> holders_;
};

std::string PastPath(Slot slot);

}  // namespace firn
