#pragma once

#include "client/client_options.h"
#include "common/status.h"

namespace firn::client {

// kInvalid names every field that is out of range. The source is not looked at.
Status CheckOptions(const ClientOptions& options);

}  // namespace firn::client
