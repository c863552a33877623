#pragma once

#include <string>
#include <string_view>

#include "registry/cluster/records.h"

namespace firn {

// A machine id that another system still uses is reserved: out of use as one that `firn restore`
// has retired, so that no Firn claims it, however old. The record's owner says for whom.
inline constexpr std::string_view kReservedPrefix = "reserved: ";

inline bool IsReserved(const SlotRecord& record) {
  return record.retired && std::string_view(record.owner).starts_with(kReservedPrefix);
}

}  // namespace firn
