#include "common/tls/tls_pump.h"

#include <algorithm>
#include <climits>
#include <utility>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/secret_file.h"

namespace firn {
namespace {

struct FreeContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using Context = std::unique_ptr<SSL_CTX, FreeContext>;

int Clamped(size_t n) { return static_cast<int>(std::min<size_t>(n, INT_MAX)); }

std::string LastError() {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "unknown error" : reason;
}

std::string FailureOf(ssl_st* ssl) {
  const long verdict = SSL_get_verify_result(ssl);
  const bool refused = verdict != X509_V_OK && SSL_get_verify_mode(ssl) != SSL_VERIFY_NONE;
  return refused ? Cat("its certificate: ", X509_verify_cert_error_string(verdict)) : LastError();
}

}  // namespace

Result<std::unique_ptr<TlsPump>> TlsPump::Begin(const TlsTrust& trust) {
  Context context(SSL_CTX_new(TLS_client_method()));
  if (context == nullptr) return Unavailable("OpenSSL has no memory for TLS");
  FIRN_TRY(ReadFiles(trust, *context));
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  ssl_st* const ssl = SSL_new(context.get());  // which shares the context
  if (ssl == nullptr) return Unavailable("OpenSSL has no memory for TLS");
  SSL_set_verify(ssl, trust.ca_file.empty() ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  if (!trust.name.empty()) RequireName(ssl, trust.name);
  return std::make_unique<TlsPump>(ssl, [ssl] { return FailureOf(ssl); });
}

Status TlsPump::ReadFiles(const TlsTrust& trust, ssl_ctx_st& context) {
  ERR_clear_error();
  for (const std::string& path : {trust.ca_file, trust.cert_file}) {
    // OpenSSL would block on a FIFO.
    if (!path.empty()) FIRN_TRY(OpenRegular(path, O_RDONLY).status());
  }
  const auto unusable = [](const std::string& file) {
    const std::string reason = LastError();
    ERR_clear_error();  // the caller's thread may use OpenSSL, too
    return Invalid(Cat(file, ": ", reason));
  };
  if (!trust.ca_file.empty() && SSL_CTX_load_verify_file(&context, trust.ca_file.c_str()) != 1) {
    return unusable(trust.ca_file);
  }
  if (trust.cert_file.empty()) return {};
  FIRN_TRY(CheckSecretFile(trust.key_file));
  if (SSL_CTX_use_certificate_chain_file(&context, trust.cert_file.c_str()) != 1) {
    return unusable(trust.cert_file);
  }
  const char* const key = trust.key_file.c_str();
  const bool fits = SSL_CTX_use_PrivateKey_file(&context, key, SSL_FILETYPE_PEM) == 1;
  return fits ? Status() : unusable(trust.key_file);
}

void TlsPump::RequireName(ssl_st* ssl, const std::string& name) {
  X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
  X509_VERIFY_PARAM_set_hostflags(wanted, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_ip_asc(wanted, name.c_str()) == 1) return;
  SSL_set1_host(ssl, name.c_str());
  std::string sent = name;
  SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, sent.data());
}

TlsPump::TlsPump(ssl_st* ssl, std::function<std::string()> explain)
    : ssl_(ssl), explain_(std::move(explain)) {
  SSL_set_bio(ssl_, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  SSL_set_connect_state(ssl_);
  Agree();
}

TlsPump::~TlsPump() { SSL_free(ssl_); }

void TlsPump::Feed(std::string_view bytes) {
  BIO_write(SSL_get_rbio(ssl_), bytes.data(), Clamped(bytes.size()));
  if (state_ == State::kAgreeing) Agree();
}

void TlsPump::Agree() {
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_);
  if (result == 1) {
    state_ = State::kAgreed;
  } else {
    Fail(result);
  }
  Drain();
}

size_t TlsPump::Read(char* into, size_t size) {
  if (state_ != State::kAgreed) return 0;
  ERR_clear_error();
  const int n = SSL_read(ssl_, into, Clamped(size));
  if (n <= 0) Fail(n);
  Drain();
  return n > 0 ? static_cast<size_t>(n) : 0;
}

void TlsPump::Seal(std::string_view bytes) {
  ERR_clear_error();
  const int n = SSL_write(ssl_, bytes.data(), Clamped(bytes.size()));
  if (n <= 0) Fail(n);
  Drain();
}

// Moves the bytes that OpenSSL wants to send to sealed_.
void TlsPump::Drain() {
  BIO* const out = SSL_get_wbio(ssl_);
  const size_t before = sealed_.size(), more = BIO_ctrl_pending(out);
  if (more == 0) return;
  sealed_.resize(before + more);
  BIO_read(out, sealed_.data() + before, Clamped(more));
}

void TlsPump::Fail(int result) {
  const int error = SSL_get_error(ssl_, result);
  if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE) return;
  // A close_notify: the end of the connection follows and is reported then.
  if (error == SSL_ERROR_ZERO_RETURN) return;
  why_ = explain_();
  state_ = State::kFailed;
}

}  // namespace firn
