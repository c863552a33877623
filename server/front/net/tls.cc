#include "server/front/net/tls.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <fcntl.h>
#include <openssl/x509v3.h>

#include "common/base/files.h"
#include "common/base/secret_file.h"
#include "server/front/net/asio_wire.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

// How long a client may resume without showing its certificate again.
constexpr long kResumableSeconds = 3'600;

Status Named(const std::string& file, const error_code& error) {
  if (!error) return {};
  return Invalid(file + ": " + error.message());
}

// A session is resumed by the ticket that the client keeps, its certificate in it, as it was found
// good. What may have changed since is the time: a client whose certificate has ended meanwhile
// shows it again, and is told.
SSL_TICKET_RETURN OnTicket(SSL*, SSL_SESSION* session, const unsigned char*, size_t,
                           SSL_TICKET_STATUS status, void*) {
  if (status != SSL_TICKET_SUCCESS && status != SSL_TICKET_SUCCESS_RENEW) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  const X509* certificate = SSL_SESSION_get0_peer(session);
  if (certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0) {
    return SSL_TICKET_RETURN_IGNORE_RENEW;
  }
  return status == SSL_TICKET_SUCCESS ? SSL_TICKET_RETURN_USE : SSL_TICKET_RETURN_USE_RENEW;
}

// Every context draws keys of its own for its tickets, so that none is good beyond a reload: what
// was found good by other files is looked at again.
void PermitResuming(SSL_CTX* context) {
  constexpr std::string_view kName = "firn";  // without one, OpenSSL ends whoever resumes
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kName.data()),
                                 kName.size());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // the tickets are with the clients
  SSL_CTX_set_timeout(context, kResumableSeconds);
  SSL_CTX_set_session_ticket_cb(context, nullptr, OnTicket, nullptr);
}

std::string_view TextOf(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// DNS names and URIs of its subjectAltName, and its common name.
std::vector<std::string> NamesShownBy(SSL* peer) {
  std::vector<std::string> names;
  const std::unique_ptr<X509, decltype(&X509_free)> shown(SSL_get1_peer_certificate(peer),
                                                          X509_free);
  if (shown == nullptr) return names;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> others(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(shown.get(), NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  for (int i = 0; i < sk_GENERAL_NAME_num(others.get()); ++i) {
    const GENERAL_NAME* const one = sk_GENERAL_NAME_value(others.get(), i);
    if (one->type == GEN_DNS) names.emplace_back(TextOf(one->d.dNSName));
    if (one->type == GEN_URI) names.emplace_back(TextOf(one->d.uniformResourceIdentifier));
  }
  const X509_NAME* const subject = X509_get_subject_name(shown.get());
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    names.emplace_back(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

// A base, so that it outlives the stream.
struct SharedContext {
  const std::shared_ptr<ssl::context> context;
};

class TlsWire final : private SharedContext, public AsioWire<ssl::stream<TcpSocket>> {
 public:
  TlsWire(TcpSocket accepted, std::shared_ptr<ssl::context> shared)
      : SharedContext{std::move(shared)}, AsioWire(std::move(accepted), *context) {}

  void Read(InBuffer&& input) override {
    if (agreed_) return AsioWire::Read(std::move(input));
    held_ = std::move(input);
    stream().async_handshake(ssl::stream_base::server, [this](const error_code& error) {
      if (error) return connection().OnHandshakeFailed();
      agreed_ = true;
      connection().OnIdentified(NamesShownBy(stream().native_handle()));
      AsioWire::Read(std::move(held_));
    });
  }

  // What fits into the socket cannot be known before it is encrypted.
  size_t WriteNow(std::string_view) override { return 0; }

  bool Opening() const override { return !agreed_; }

 private:
  bool IsEnd(const error_code& error) const override {
    return error == asio::error::eof || error == ssl::error::stream_truncated;
  }

  InBuffer held_;  // for the first read, until encryption has been agreed upon
  bool agreed_ = false;
};

}  // namespace

Tls::~Tls() = default;

Status Tls::Load() {
  for (const std::string& path : {files_.cert, files_.client_ca}) {
    // OpenSSL would wait for whoever holds a FIFO's other end.
    if (!path.empty()) FIRN_TRY(OpenRegular(path, O_RDONLY).status());
  }
  FIRN_TRY(CheckSecretFile(files_.key));
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
  PermitResuming(context->native_handle());
  std::lock_guard lock(mutex_);
  context_ = std::move(context);
  return {};
}

std::unique_ptr<Wire> Tls::Wrap(TcpSocket socket) const {
  std::lock_guard lock(mutex_);
  return std::make_unique<TlsWire>(std::move(socket), context_);
}

}  // namespace firn::front
