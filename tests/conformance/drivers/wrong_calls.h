#pragma once

#include "client/client.h"
#include "common/json/json.h"

namespace firn {

// Passes invalid values for every parameter. Returns the number of calls that failed, and the
// names of calls that did not fail.
Json WrongCalls(Client& client);

}  // namespace firn
