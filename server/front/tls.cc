#include "server/front/tls.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "server/front/handler_slot.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

Status Named(const std::string& file, const error_code& error) {
  if (!error) return {};
  return Invalid(file + ": " + error.message());
}

class TlsWire final : public Wire {
 public:
  TlsWire(TcpSocket socket, std::shared_ptr<ssl::context> context)
      : context_(std::move(context)), stream_(std::move(socket), *context_) {
    error_code ignored;  // without it, it is slower and not wrong
    stream_.next_layer().set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void Bind(WireUser& user) override { user_ = &user; }

  void Read(char* into, size_t size) override {
    if (agreed_) return ReadSome(into, size);
    stream_.async_handshake(ssl::stream_base::server, [this, into, size](const error_code& error) {
      if (error) return user_->OnHandshakeFailed();
      agreed_ = true;
      ReadSome(into, size);
    });
  }

  // What fits into the socket cannot be known before it is encrypted.
  size_t WriteNow(std::string_view) override { return 0; }

  void Write(std::string_view bytes) override {
    stream_.async_write_some(asio::buffer(bytes.data(), bytes.size()),
                             InSlot(write_slot_, [this](const error_code& error, size_t n) {
                               if (error) return user_->OnWriteFailed();
                               user_->OnWritten(n);
                             }));
  }

  void FinishSending() override {
    error_code ignored;
    stream_.next_layer().shutdown(asio::socket_base::shutdown_send, ignored);
  }

  void Close() override {
    error_code ignored;
    stream_.next_layer().close(ignored);
  }

  bool Opening() const override { return !agreed_; }

 private:
  void ReadSome(char* into, size_t size) {
    stream_.async_read_some(
        asio::buffer(into, size), InSlot(read_slot_, [this](const error_code& error, size_t n) {
          if (!error) return user_->OnRead(n);
          user_->OnReadFailed(error == asio::error::eof || error == ssl::error::stream_truncated);
        }));
  }

  const std::shared_ptr<ssl::context> context_;
  ssl::stream<TcpSocket> stream_;
  WireUser* user_ = nullptr;
  HandlerSlot read_slot_, write_slot_;
  bool agreed_ = false;
};

}  // namespace

Tls::~Tls() = default;

Status Tls::Load() {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                       ssl::context::no_tlsv1_1);
  error_code error;
  context->use_certificate_chain_file(files_.cert, error);
  FIRN_TRY(Named(files_.cert, error));
  context->use_private_key_file(files_.key, ssl::context::pem, error);
  FIRN_TRY(Named(files_.key, error));
  if (!files_.client_ca.empty()) {
    context->load_verify_file(files_.client_ca, error);
    FIRN_TRY(Named(files_.client_ca, error));
    context->set_verify_mode(ssl::verify_peer | ssl::verify_fail_if_no_peer_cert);
  }
  std::lock_guard lock(mutex_);
  context_ = std::move(context);
  return {};
}

std::unique_ptr<Wire> Tls::Wrap(TcpSocket socket) const {
  std::lock_guard lock(mutex_);
  return std::make_unique<TlsWire>(std::move(socket), context_);
}

}  // namespace firn::front
