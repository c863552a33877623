#pragma once

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>

#include "server/front/net/connection.h"
#include "server/front/net/handler_slot.h"
#include "server/front/net/plain_wire.h"
#include "server/front/net/wire.h"

namespace firn::front {

// A wire over a stream of Asio's. Keeps what reads and writes point at (the buffers, and the
// memory of the operations) for as long as they are under way. Used by one IO thread.
template <typename Stream>
class AsioWire : public Wire {
 public:
  void Bind(Connection& connection) final { connection_ = &connection; }

  void Read(InBuffer&& input) override {
    input_ = std::move(input);
    ReadSome();
  }

  void Write(OutBuffer& bytes) final {
    std::swap(output_, bytes);
    WriteSome();
  }

  void FinishSending() final {
    Error ignored;  // the peer may have gone: the next read says so
    socket().shutdown(boost::asio::socket_base::shutdown_send, ignored);
  }

  void Close() final {
    Error ignored;
    socket().close(ignored);
  }

 protected:
  using Error = boost::system::error_code;

  template <typename... Args>
  explicit AsioWire(Args&&... args) : stream_(std::forward<Args>(args)...) {
    Error ignored;  // without it, it is slower and not wrong
    socket().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  }

  Stream& stream() { return stream_; }
  TcpSocket& socket() { return SocketOf(stream_); }
  Connection& connection() { return *connection_; }

  void ReadSome() {
    const std::span<char> room = input_.room();
    stream_.async_read_some(
        boost::asio::buffer(room.data(), room.size()),
        InSlot(read_slot_, [this](const Error& error, size_t n) { OnReadSome(error, n); }));
  }

 private:
  static TcpSocket& SocketOf(TcpSocket& socket) { return socket; }
  template <typename Secured>
  static TcpSocket& SocketOf(Secured& stream) {
    return stream.next_layer();
  }

  // Whether a peer that sends no more has said so in its own way.
  virtual bool IsEnd(const Error& error) const { return error == boost::asio::error::eof; }

  void OnReadSome(const Error& error, size_t n) {
    if (error) return connection_->OnReadFailed(IsEnd(error));
    input_.Filled(n);
    connection_->OnRead(n, std::move(input_));
  }

  void WriteSome() {
    const std::string_view bytes = output_.view();
    stream_.async_write_some(
        boost::asio::buffer(bytes.data(), bytes.size()),
        InSlot(write_slot_, [this](const Error& error, size_t n) { OnWrittenSome(error, n); }));
  }

  void OnWrittenSome(const Error& error, size_t n) {
    if (error) return connection_->OnWriteFailed();
    output_.Consume(n);
    if (!output_.empty()) WriteSome();
    connection_->OnWritten(n);  // the last: it may end this
  }

  // Before the stream, whose operations point at them.
  HandlerSlot read_slot_, write_slot_;
  InBuffer input_;
  OutBuffer output_;
  Stream stream_;
  Connection* connection_ = nullptr;
};

}  // namespace firn::front
