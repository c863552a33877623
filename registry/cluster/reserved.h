#pragma once

#include <string>
#include <string_view>

#include "registry/cluster/records.h"

namespace firn {

// A machine id that another system still uses is reserved. Its record is marked as retired, as by
// `firn restore`, so that no version of Firn claims it. The record's owner names the system.
inline constexpr std::string_view kReservedPrefix = "reserved: ";

// The owner in a record that a restore has re-created for a machine id that was in use.
inline constexpr std::string_view kRestoredOwner = "a server before the restore";

inline bool IsReserved(const SlotRecord& record) {
  return record.retired && std::string_view(record.owner).starts_with(kReservedPrefix);
}

}  // namespace firn
