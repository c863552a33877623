#include "server/front/plain_wire.h"

#include <boost/asio/buffer.hpp>

#include "server/front/handler_slot.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

class PlainWire final : public Wire {
 public:
  explicit PlainWire(TcpSocket socket) : socket_(std::move(socket)) {
    error_code ignored;  // without either, it is slower and not wrong
    socket_.non_blocking(true, ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void Bind(WireUser& user) override { user_ = &user; }

  void Read(char* into, size_t size) override {
    socket_.async_read_some(asio::buffer(into, size),
                            InSlot(read_slot_, [this](const error_code& error, size_t n) {
                              if (!error) return user_->OnRead(n);
                              user_->OnReadFailed(error == asio::error::eof);
                            }));
  }

  size_t WriteNow(std::string_view bytes) override {
    error_code error;
    const size_t n = socket_.write_some(asio::buffer(bytes.data(), bytes.size()), error);
    return error ? 0 : n;
  }

  void Write(std::string_view bytes) override {
    socket_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             InSlot(write_slot_, [this](const error_code& error, size_t n) {
                               if (error) return user_->OnWriteFailed();
                               user_->OnWritten(n);
                             }));
  }

  void FinishSending() override {
    error_code ignored;  // the peer may have gone: the next read says so
    socket_.shutdown(asio::socket_base::shutdown_send, ignored);
  }

  void Close() override {
    error_code ignored;
    socket_.close(ignored);
  }

 private:
  TcpSocket socket_;
  WireUser* user_ = nullptr;
  HandlerSlot read_slot_, write_slot_;
};

}  // namespace

std::unique_ptr<Wire> MakePlainWire(TcpSocket socket) {
  return std::make_unique<PlainWire>(std::move(socket));
}

}  // namespace firn::front
