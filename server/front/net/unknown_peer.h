#pragma once

#include <string_view>

#include "server/front/net/buffers.h"

namespace firn::front {

// A peer whose first bytes belong to no supported protocol: usually a client with a wrong setting,
// which would otherwise only see a closed connection.

// The protocol that it seems to use, for the log: "Redis, which is not served on this port".
std::string_view DescribeUnknownPeer(std::string_view first);

// Appends an answer in its own protocol, if that is known: Thrift without frames gets an exception
// that says that frames are required, and Redis an error where it is not served.
void RefuseUnknownPeer(std::string_view first, OutBuffer& out);

}  // namespace firn::front
