#include "client/wire/tls_talk.h"

#include <utility>

#include <openssl/err.h>
#include <openssl/x509v3.h>

#include "client/wire/tls_credentials.h"
#include "common/base/cat.h"
#include "common/base/units.h"

namespace firn::client {
namespace {

// Returns the names in a certificate, for messages.
std::string NamesIn(X509* certificate) {
  std::string names;
  const auto add = [&](std::string_view name) { names += Cat(names.empty() ? "" : ", ", name); };
  auto* const all = static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(all); ++i) {
    const GENERAL_NAME* const one = sk_GENERAL_NAME_value(all, i);
    if (one->type != GEN_DNS && one->type != GEN_IPADD) continue;
    const ASN1_STRING* const text = one->type == GEN_DNS ? one->d.dNSName : one->d.iPAddress;
    const std::string_view bytes(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                 static_cast<size_t>(ASN1_STRING_length(text)));
    if (one->type == GEN_DNS) {
      add(bytes);
    } else if (bytes.size() == 4) {
      const auto part = [&](size_t at) { return int{static_cast<unsigned char>(bytes[at])}; };
      add(Cat(part(0), ".", part(1), ".", part(2), ".", part(3)));
    } else {
      add("an IPv6 address");
    }
  }
  GENERAL_NAMES_free(all);
  return names.empty() ? "no host" : names;
}

// Returns a message if a TLS alert is about the client's certificate, otherwise "".
bool IsAboutOwnCertificate(int reason) {
  switch (reason) {
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV1_ALERT_ACCESS_DENIED:
      return true;
    default:
      return false;
  }
}

// Returns whether the error means that the peer does not use TLS.
bool IsPlain(int reason) {
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_RECORD_LENGTH_MISMATCH ||
         reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_HTTP_REQUEST;
}

// Called for each certificate of the chain. Stores the names of a refused certificate, which is no
// longer available after the failed handshake.
int OnVerified(int good, X509_STORE_CTX* store) {
  if (good == 1) return good;
  auto* const ssl =
      static_cast<SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (X509* const refused = X509_STORE_CTX_get_current_cert(store)) {
    static_cast<TlsTalk*>(SSL_get_app_data(ssl))->KeepNames(NamesIn(refused));
  }
  return good;
}

}  // namespace

TlsTalk::TlsTalk(std::shared_ptr<TlsCredentials> credentials, std::string server, std::string name)
    : credentials_(std::move(credentials)),
      server_(std::move(server)),
      name_(std::move(name)),
      ssl_(Prepare()),
      pump_(ssl_, [this] { return Refusal(); }) {}

ssl_st* TlsTalk::Prepare() {
  ssl_st* const ssl = SSL_new(credentials_->context.get());
  if (ssl == nullptr) Die("OpenSSL has no memory");
  SSL_set_app_data(ssl, this);
  SSL_set_verify(ssl, SSL_VERIFY_PEER, OnVerified);
  TlsPump::RequireName(ssl, name_);
  X509_VERIFY_PARAM_set_hostflags(SSL_get0_param(ssl), X509_CHECK_FLAG_NEVER_CHECK_SUBJECT |
                                                           X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  credentials_->Resume(server_, ssl);
  return ssl;
}

TlsTalk::~TlsTalk() {
  // OpenSSL permits resumption only after a shutdown, so this pretends one.
  SSL_set_quiet_shutdown(ssl_, 1);
  if (state() == State::kAgreed) SSL_shutdown(ssl_);
}

void TlsTalk::KeepSession(ssl_session_st* session) { credentials_->Keep(server_, session); }

bool TlsTalk::resumed() const { return SSL_session_reused(ssl_) == 1; }

// --- failures -----------------------------------------------------------------------------------

std::string TlsTalk::Refusal() const {
  const long verdict = SSL_get_verify_result(ssl_);
  const std::string_view said = X509_verify_cert_error_string(verdict);
  switch (verdict) {
    case X509_V_OK:
      break;
    case X509_V_ERR_HOSTNAME_MISMATCH:
    case X509_V_ERR_IP_ADDRESS_MISMATCH:
      return Cat("its certificate is for ", names_, ", not for ", name_);
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return Cat("its certificate is not signed by an authority in ", credentials_->ca, ": ", said);
    default:
      return Cat("its certificate: ", said);
  }
  const unsigned long last = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(last);
  if (IsPlain(reason)) return "it does not speak TLS";
  const char* const named = ERR_reason_error_string(last);
  const std::string_view word = named == nullptr ? "it broke" : named;
  if (!IsAboutOwnCertificate(reason)) return Cat("TLS: ", word);
  if (credentials_->cert.empty()) return Cat("it requires a client certificate: ", word);
  return Cat("it refuses the certificate ", credentials_->cert, ": ", word);
}

Outcome TlsTalk::FailureOf(std::string_view closed) const {
  if (state() == State::kFailed) {
    return Outcome::Of(AttemptEnd::kWrongService, pump_.why());
  }
  return Outcome::Of(AttemptEnd::kUnreachable,
                     Cat("it closed the connection in the TLS handshake; it may not speak TLS",
                         closed.empty() ? "" : ": ", closed));
}

}  // namespace firn::client
