#pragma once

#include <span>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>

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

  explicit AsioWire(StreamSocket accepted) : socket_(std::move(accepted)) {
    Error ignored;  // without either, it is slower and not wrong; a Unix socket has no delay
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
  }

  Connection& connection() { return *connection_; }

  // Calls `then` with an error, or with how many bytes have come into the room of `input`. An empty
  // buffer that has grown is pointed at by no operation while it waits, so Relax may free it. A
  // small one is, which saves a call of the kernel, until RelaxRead.
  template <typename Then>
  void ReceiveInto(InBuffer& input, Then then) {
    if (!input.empty() || input.memory() <= InBuffer::kFirst) return ReadSome(input, then);
    Error error;
    const std::span<char> room = input.room();
    const size_t n = socket_.read_some(boost::asio::buffer(room.data(), room.size()), error);
    if (error != boost::asio::error::would_block) {
      return boost::asio::post(socket_.get_executor(),
                               InSlot(read_slot_, [then, error, n] { then(error, n); }));
    }
    Await(input, then);
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
  StreamSocket& socket() { return socket_; }
  // Frees the memory of the buffer that the read under way is to fill, while nothing has come.
  void RelaxRead(InBuffer& input) {
    if (awaits_) return input.Relax();
    if (!reads_ || relaxes_ || !input.empty()) return;
    relaxes_ = true;
    Error ignored;  // then it is not cancelled, and keeps its buffer
    socket_.cancel(ignored);
  }

  // Before the socket, whose operations point at them.
  HandlerSlot read_slot_, write_slot_;
  InBuffer input_;    // of the read that is under way
  OutBuffer output_;  // of the write that is under way

 private:
  template <typename Then>
  void ReadSome(InBuffer& input, Then then) {
    reads_ = true;
    const std::span<char> room = input.room();
    const auto read = [this, &input, then](const Error& error, size_t n) {
      reads_ = false;
      const bool relaxes = std::exchange(relaxes_, false);
      if (!relaxes || error != boost::asio::error::operation_aborted) return then(error, n);
      input.Relax();
      Await(input, then);
    };
    socket_.async_read_some(boost::asio::buffer(room.data(), room.size()),
                            InSlot(read_slot_, read));
  }
  // Waits until there is something to read, with no operation that points into `input`.
  template <typename Then>
  void Await(InBuffer& input, Then then) {
    awaits_ = true;
    const auto read = [this, &input, then](const Error& failed) {
      awaits_ = false;
      if (failed) return then(failed, size_t{0});
      if (input.room().empty()) input.MakeRoom(0, InBuffer::kFirst);  // it was relaxed
      ReadSome(input, then);
    };
    socket_.async_wait(StreamSocket::wait_read, InSlot(read_slot_, read));
  }

  StreamSocket socket_;
  bool awaits_ = false;   // the read under way points into no buffer
  bool reads_ = false;    // it does
  bool relaxes_ = false;  // and is cancelled, so that it does not
  Connection* connection_ = nullptr;
};

}  // namespace firn::front
