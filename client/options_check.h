#pragma once

#include "client/client_options.h"
#include "common/base/status.h"

namespace firn::client {

// kInvalid names every field that is out of range. The source is not looked at.
// No call takes longer.
inline constexpr Milliseconds kDeadlineMax{3'600'000};

Status CheckOptions(const ClientOptions& options);

}  // namespace firn::client
