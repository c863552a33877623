#pragma once

#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

// Answers for a peer whose first bytes match no supported protocol: usually a client with a wrong
// setting, which would otherwise only see a closed connection.

// Describes the protocol that it seems to use, for the log: "Redis, which is not served on this
// port".
std::string_view DescribeUnknownPeer(std::string_view first);

// Appends an error in the peer's own protocol, if there is one: Thrift without frames gets an
// exception that says that frames are required, and Redis, if it is not served, an error.
void RefuseUnknownPeer(std::string_view first, OutBuffer& out);

}  // namespace firn::front
