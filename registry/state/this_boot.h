#pragma once

#include <string>

#include "common/base/status.h"

namespace firn {

// The device through which a hypervisor shows a virtual machine's generation, Linux 7.0 or later.
inline constexpr char kVmClock[] = "/dev/vmclock0";

// Returns the kernel's id of this boot, and ".<number>" behind it if the kernel shows the
// generation of the virtual machine, a number that changes when a snapshot of it is resumed: a copy
// has another id than the original. kUnavailable if one of the two cannot be read now.
Result<std::string> BootId(const std::string& vm_clock = kVmClock);

}  // namespace firn
