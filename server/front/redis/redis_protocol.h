#pragma once

#include <memory>

#include "server/front/desk/backend.h"
#include "server/front/desk/id_desk.h"
#include "server/front/net/protocol.h"
#include "server/front/redis/redis_logins.h"

namespace firn::front {

// The Redis protocol, RESP2 and RESP3: INCR of a key returns the next id of the tag with that name.
// One object for each IO thread. All parameters must outlive it; `desk` is of the same thread.
// `logins`: only their users get ids; null: everyone. `incr_64bit`: integer replies may exceed
// kExactMax.
std::unique_ptr<Protocol> MakeRedisProtocol(const Backend& backend, IdDesk& desk,
                                            const RedisLogins* logins, bool incr_64bit = false);

}  // namespace firn::front
