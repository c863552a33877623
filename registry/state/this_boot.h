#pragma once

#include <string>

#include "common/base/status.h"

namespace firn {

// This boot's name, as the kernel tells it; kUnavailable where it does not.
Result<std::string> BootId();

}  // namespace firn
