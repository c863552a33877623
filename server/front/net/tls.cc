#include "server/front/net/tls.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/asio/ssl/context.hpp>
#include <fcntl.h>
#include <openssl/ssl.h>

#include "common/base/files.h"
#include "common/base/secret_file.h"
#include "server/front/net/certificate.h"

namespace firn::front {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr const char* kCiphersOfTls12 = "ECDHE+AESGCM:ECDHE+CHACHA20";

// Maximum size of a client's certificate chain.
constexpr long kCertificatesMax = 16 * 1024;

// Time after which a resumed session needs the client's certificate again.
constexpr long kResumableSeconds = 3'600;

Status Named(const std::string& file, const error_code& error) {
  if (!error) return {};
  return Invalid(file + ": " + error.message());
}

// A session is resumed by the ticket that the client stores, which contains its verified
// certificate. If the certificate has expired since, the client must present it again, and gets the
// error.
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

// Each context has its own ticket keys, so no ticket is valid after a reload: clients are verified
// against the new files.
void PermitResuming(SSL_CTX* context) {
  constexpr std::string_view kName = "firn";  // without one, OpenSSL rejects resumption
  SSL_CTX_set_session_id_context(context, reinterpret_cast<const unsigned char*>(kName.data()),
                                 kName.size());
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // clients store the tickets
  SSL_CTX_set_timeout(context, kResumableSeconds);
  SSL_CTX_set_session_ticket_cb(context, nullptr, OnTicket, nullptr);
}

// The file may contain an expired authority that was replaced. All clients are refused only if none
// of the authorities is valid.
Status CheckOneValidNow(const std::vector<const X509*>& authorities, const std::string& file) {
  Status fault = Invalid(file + ": contains no certificate");
  for (const X509* one : authorities) {
    fault = CheckValidNow(*one, file);
    if (fault.ok()) break;
  }
  return fault;
}

}  // namespace

Status CheckTls(const TlsFiles& files) { return Tls(files).Load(); }

Tls::~Tls() = default;

Status Tls::Load() { return Read(false); }
Status Tls::Reload() { return Read(true); }

TlsExpiry Tls::expiry() const {
  const std::lock_guard lock(mutex_);
  return expiry_;
}

Status Tls::Read(bool must_be_valid) {
  for (const std::string& path : {files_.cert, files_.client_ca}) {
    // OpenSSL would block on a FIFO until its other end is opened.
    if (!path.empty()) FIRN_TRY(OpenRegular(path, O_RDONLY).status());
  }
  FIRN_TRY(CheckSecretFile(files_.key));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::default_workarounds | ssl::context::no_tlsv1 |
                       ssl::context::no_tlsv1_1 | SSL_OP_NO_RENEGOTIATION);
  // OpenSSL allocates as much for a client's certificates as the client announces.
  SSL_CTX_set_max_cert_list(context->native_handle(), kCertificatesMax);
  // Refuses early data. OpenSSL would skip it before the ClientHello that follows a
  // HelloRetryRequest, but gets that ClientHello only when it is complete (tls_wire.cc).
  SSL_CTX_set_recv_max_early_data(context->native_handle(), 0);
  // TLS 1.2: only ciphers with forward secrecy and authenticated encryption.
  SSL_CTX_set_cipher_list(context->native_handle(), kCiphersOfTls12);
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
  const X509* const certificate = SSL_CTX_get0_certificate(context->native_handle());
  if (certificate == nullptr) return Invalid(files_.cert + ": contains no certificate");
  if (must_be_valid) FIRN_TRY(CheckValidNow(*certificate, files_.cert));
  TlsExpiry expiry{ExpiryOf(*certificate)};
  if (!files_.client_ca.empty()) {
    const std::vector<const X509*> authorities = AuthoritiesOf(*context->native_handle());
    if (must_be_valid) FIRN_TRY(CheckOneValidNow(authorities, files_.client_ca));
    for (const X509* one : authorities) {
      expiry.client_ca = std::min(expiry.client_ca.value_or(ExpiryOf(*one)), ExpiryOf(*one));
    }
  }
  // An idle connection keeps no record buffers, which take 34 KiB each.
  SSL_CTX_set_mode(context->native_handle(), SSL_MODE_RELEASE_BUFFERS);
  std::lock_guard lock(mutex_);
  context_ = std::move(context);
  expiry_ = expiry;
  return {};
}

std::unique_ptr<Wire> Tls::Wrap(StreamSocket socket) const {
  std::lock_guard lock(mutex_);
  return MakeTlsWire(std::move(socket), context_->native_handle());
}

}  // namespace firn::front
