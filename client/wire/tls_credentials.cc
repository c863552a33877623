#include "client/wire/tls_credentials.h"

#include <utility>

#include <openssl/x509.h>

#include "client/server_source.h"
#include "client/wire/tls_talk.h"
#include "common/tls/tls_pump.h"

namespace firn::client {
namespace {

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
  SSL_CTX* const context = made->context.get();
  FIRN_TRY(TlsPump::ReadFiles(
      {.ca_file = options.ca, .cert_file = options.cert, .key_file = options.key}, *context));
  if (options.ca.empty()) SSL_CTX_set_default_verify_paths(context);
  made->ca = options.ca.empty() ? "this machine" : options.ca;
  made->cert = options.cert;
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
  SSL_CTX_sess_set_new_cb(context, OnSession);
  return made;
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
