#pragma once

#include <string>

#include "common/base/status.h"

namespace firn {

// Returns the kernel's id of this boot; kUnavailable if it has none.
Result<std::string> BootId();

}  // namespace firn
