#pragma once

#include <memory>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "server/front/net/wire.h"

namespace firn::front {

// A TCP or Unix socket of one IO thread. The concrete executor type avoids a type-erased call in
// each operation.
using StreamSocket = boost::asio::basic_stream_socket<boost::asio::generic::stream_protocol,
                                                      boost::asio::io_context::executor_type>;

// A socket without encryption. Takes the socket, which is open.
std::unique_ptr<Wire> MakePlainWire(StreamSocket socket);

}  // namespace firn::front
