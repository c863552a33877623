#pragma once

#include <cstdint>

#include "common/id/explain.h"
#include "server/front/desk/backend.h"
#include "server/issue/request.h"

namespace firn::front {

// Vesta's makeId: builds an id from its fields, without issuing it. The default machine id and
// method are this server's own. kInvalid names the fault.
Result<int64_t> MakeVestaId(const ComposeRequest& fields, const Backend& backend, Method method);

}  // namespace firn::front
