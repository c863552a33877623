#include "client/wire/tls_credentials.h"

#include <utility>

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/x509.h>

#include "client/server_source.h"
#include "client/wire/tls_talk.h"
#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/secret_file.h"

namespace firn::client {
namespace {

Status Unusable(const std::string& file) {
  const char* const reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return Invalid(Cat(file, ": ", reason == nullptr ? "it cannot be used" : reason));
}

bool Ended(const X509* certificate) {
  return certificate != nullptr && X509_cmp_current_time(X509_get0_notAfter(certificate)) <= 0;
}

// TLS 1.3 sends sessions after the handshake.
int OnSession(SSL* ssl, SSL_SESSION* session) {
  static_cast<TlsTalk*>(SSL_get_app_data(ssl))->KeepSession(session);
  return 1;  // takes ownership
}

}  // namespace

Result<std::shared_ptr<TlsCredentials>> TlsCredentials::Read(const TlsOptions& options) {
  auto made = std::make_shared<TlsCredentials>();
  made->context.reset(SSL_CTX_new(TLS_client_method()));
  if (made->context == nullptr) return Unavailable("OpenSSL has no memory for TLS");
  FIRN_TRY(made->ReadFiles(options));
  SSL_CTX* const context = made->context.get();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(context, OnSession);
  return made;
}

Status TlsCredentials::ReadFiles(const TlsOptions& options) {
  ERR_clear_error();
  for (const std::string& path : {options.ca, options.cert}) {
    // OpenSSL would block on a FIFO.
    if (!path.empty()) FIRN_TRY(OpenRegular(path, O_RDONLY).status());
  }
  if (options.ca.empty()) {
    ca = "this machine";
    SSL_CTX_set_default_verify_paths(context.get());
  } else {
    ca = options.ca;
    if (SSL_CTX_load_verify_file(context.get(), ca.c_str()) != 1) return Unusable(ca);
  }
  cert = options.cert;
  if (cert.empty()) return {};
  FIRN_TRY(CheckSecretFile(options.key));
  if (SSL_CTX_use_certificate_chain_file(context.get(), cert.c_str()) != 1) return Unusable(cert);
  const char* const key = options.key.c_str();
  const bool fits = SSL_CTX_use_PrivateKey_file(context.get(), key, SSL_FILETYPE_PEM) == 1;
  return fits ? Status() : Unusable(options.key);
}

void TlsCredentials::Resume(const std::string& server, SSL* ssl) {
  const std::lock_guard lock(mutex_);
  const auto found = sessions_.find(server);
  if (found == sessions_.end()) return;
  SSL_SESSION* const session = found->second.get();
  if (Ended(SSL_SESSION_get0_peer(session))) {
    sessions_.erase(found);
  } else {
    SSL_set_session(ssl, session);
  }
}

void TlsCredentials::Keep(const std::string& server, SSL_SESSION* session) {
  std::unique_ptr<SSL_SESSION, FreeTls> kept(session);
  const std::lock_guard lock(mutex_);
  if (sessions_.size() >= ServerList::kServersMax) sessions_.clear();
  sessions_[server] = std::move(kept);
}

}  // namespace firn::client
