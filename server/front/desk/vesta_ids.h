#pragma once

#include <cstdint>

#include "common/id/explain.h"
#include "server/front/desk/backend.h"
#include "server/issue/request.h"

namespace firn::front {

// Vesta's makeId: builds an id from fields, which was not issued. An absent machine id or method is
// this server's own. kInvalid names what is wrong.
Result<int64_t> MakeVestaId(const ComposeRequest& fields, const Backend& backend, Method method);

}  // namespace firn::front
