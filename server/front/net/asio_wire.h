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

// A base class for wires over an Asio socket. It owns the memory that its operations use while they
// are in progress: the buffers and the operations' handlers. Used by one IO thread.
class AsioWire : public Wire {
 public:
  void Bind(Connection& connection) final { connection_ = &connection; }

  void FinishSending() final {
    Error ignored;  // the next read reports it
    socket_.shutdown(boost::asio::socket_base::shutdown_send, ignored);
  }

  void Close() final {
    Error ignored;
    socket_.close(ignored);
  }

 protected:
  using Error = boost::system::error_code;

  explicit AsioWire(StreamSocket accepted) : socket_(std::move(accepted)) {
    Error ignored;  // a failure only costs speed; a Unix socket has no delay
    socket_.set_option(boost::asio::ip::tcp::no_delay(true), ignored);
    socket_.non_blocking(true, ignored);
  }

  Connection& connection() { return *connection_; }

  // Calls `then` with an error, or with the number of bytes that were received into `input`. While
  // the wire waits to fill an empty buffer that has grown, no operation refers to the buffer, so
  // Relax can free it. A read into a small buffer starts at once, which saves a system call;
  // RelaxRead cancels it.
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
  // Calls `then` with an error, or with the number of bytes that were sent.
  template <typename Then>
  void SendSome(std::string_view bytes, Then then) {
    socket_.async_write_some(boost::asio::buffer(bytes.data(), bytes.size()),
                             InSlot(write_slot_, then));
  }
  // Returns how many bytes can be sent without waiting; 0 also if the socket is broken.
  size_t SendNow(std::string_view bytes) {
    Error error;
    const size_t n = socket_.write_some(boost::asio::buffer(bytes.data(), bytes.size()), error);
    return error ? 0 : n;
  }
  StreamSocket& socket() { return socket_; }
  // Frees the memory of the buffer that the current read is to fill, if nothing has arrived.
  void RelaxRead(InBuffer& input) {
    if (awaits_) return input.Relax();
    if (!reads_ || relaxes_ || !input.empty()) return;
    relaxes_ = true;
    Error ignored;  // on an error the read keeps its buffer
    socket_.cancel(ignored);
  }

  // Before the socket, whose operations use them.
  HandlerSlot read_slot_, write_slot_;
  InBuffer input_;    // of the read in progress
  OutBuffer output_;  // of the write in progress

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
  // Waits until there is something to read; no operation refers to `input` meanwhile.
  template <typename Then>
  void Await(InBuffer& input, Then then) {
    awaits_ = true;
    const auto read = [this, &input, then](const Error& failed) {
      awaits_ = false;
      if (failed) return then(failed, size_t{0});
      if (input.room().empty()) input.MakeRoom(0, InBuffer::kFirst);  // its memory was freed
      ReadSome(input, then);
    };
    socket_.async_wait(StreamSocket::wait_read, InSlot(read_slot_, read));
  }

  StreamSocket socket_;
  bool awaits_ = false;   // a read waits until the socket is readable, without a buffer
  bool reads_ = false;    // a read into a buffer is in progress
  bool relaxes_ = false;  // that read is being cancelled, so that its buffer can be freed
  Connection* connection_ = nullptr;
};

}  // namespace firn::front
