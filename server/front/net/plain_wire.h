#pragma once

#include <memory>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "server/front/net/wire.h"

namespace firn::front {

// A TCP socket of one IO thread. With its executor's type spelled out, which spares every
// operation a layer.
using TcpSocket =
    boost::asio::basic_stream_socket<boost::asio::ip::tcp, boost::asio::io_context::executor_type>;

// TCP without encryption. Takes the socket, which is open.
std::unique_ptr<Wire> MakePlainWire(TcpSocket socket);

}  // namespace firn::front
