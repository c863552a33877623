#pragma once

#include <span>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "server/front/net/connection.h"
#include "server/front/net/handler_slot.h"
#include "server/front/net/plain_wire.h"
#include "server/front/net/wire.h"

namespace firn::front {

// What wires over a socket of Asio's have in common. Keeps what reads and writes point at (the
// buffers, and the memory of the operations) for as long as they are under way. Used by one IO
// thread.
class AsioWire : public Wire {
 public:
  void Bind(Connection& connection) final { connection_ = &connection; }

  void FinishSending() final {
    Error ignored;  // the peer may have gone: the next read says so
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  }

  void Close() final {
    Error ignored;
    socket_.close(ignored);
  }

 protected:
  using Error = boost::system::error_code;

  explicit AsioWire(TcpSocket accepted) : socket_(std::move(accepted)) {
    Error ignored;  // without either, it is slower and not wrong
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
  }

  Connection& connection() { return *connection_; }

  // Calls `then` with an error, or with how many bytes have come into `room`.
  template <typename Then>
  void ReceiveInto(std::span<char> room, Then then) {
    socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                            InSlot(read_slot_, then));
  }
  // Calls `then` with an error, or with how many of the bytes have gone.
  template <typename Then>
  void SendSome(std::string_view bytes, Then then) {
    socket_.async_write_some(boost::asio::buffer(bytes.data(), bytes.size()),
                             InSlot(write_slot_, then));
  }
  // How many of the bytes go at once; 0 also when the socket is broken.
  size_t SendNow(std::string_view bytes) {
    Error error;
    const size_t n = socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
    return error ? 0 : n;
  }
  TcpSocket& socket() { return socket_; }

  // Before the socket, whose operations point at them.
  HandlerSlot read_slot_, write_slot_;
  InBuffer input_;    // of the read that is under way
  OutBuffer output_;  // of the write that is under way

 private:
  TcpSocket socket_;
  Connection* connection_ = nullptr;
};

}  // namespace firn::front
