#pragma once

#include <cstdint>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Parses a number in a script's answer: decimal digits only. kCorrupt otherwise.
Result<int64_t> RedisNumber(std::string_view text);

}  // namespace firn
