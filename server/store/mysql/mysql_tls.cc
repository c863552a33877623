#include "server/store/mysql/mysql_tls.h"

#include <cstdio>
#include <string_view>

#include <mariadb/errmsg.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

namespace firn {
namespace {

#if MARIADB_PACKAGE_VERSION_ID >= 30403

// The first members of MARIADB_TLS in ma_tls.h. That file cannot be included, because it includes a
// header that is not installed.
struct LibraryTls {
  void* data;
  MARIADB_PVIO* pvio;
  void* ssl;
};

// The connection that this thread is opening. The library does not pass it to the check.
thread_local MYSQL* opened = nullptr;

// Also returns false if the library's TLS is not OpenSSL, or if its struct differs.
bool HasName(const LibraryTls& tls, const char* host) {
  const char* library = nullptr;
  if (mariadb_get_infov(nullptr, MARIADB_TLS_LIBRARY, &library) != 0 ||
      !std::string_view(library).starts_with("OpenSSL") || tls.pvio != opened->net.pvio) {
    return false;
  }
  X509* const certificate = SSL_get0_peer_certificate(static_cast<SSL*>(tls.ssl));
  return certificate != nullptr && (X509_check_host(certificate, host, 0, 0, nullptr) == 1 ||
                                    X509_check_ip_asc(certificate, host, 0) == 1);
}

// Replaces the library's check of the server certificate's name, which is always skipped for
// 127.0.0.1 and ::1, and never for other addresses. OpenSSL has already checked the rest. Returns 0
// if the connection may continue.
template <bool kCompareName>
int CheckServer(const LibraryTls* tls, unsigned int /*flags*/) {
  NET& net = opened->net;
  if (net.tls_verify_status != MARIADB_TLS_VERIFY_OK) return 1;
  if (!kCompareName || HasName(*tls, opened->host)) return 0;
  net.last_errno = CR_SSL_CONNECTION_ERROR;
  std::snprintf(net.last_error, sizeof net.last_error,
                "the certificate is for another name than %s", opened->host);
  return 1;
}

void ReplaceCheck(MYSQL& client, TlsMode mode) {
  opened = &client;
  mysql_optionsv(&client, MARIADB_OPT_TLS_VERIFICATION_CALLBACK,
                 mode == TlsMode::kVerifyFull ? CheckServer<true> : CheckServer<false>);
}

#else

// This library's own check follows the settings.
void ReplaceCheck(MYSQL& /*client*/, TlsMode /*mode*/) {}

#endif

}  // namespace

void SetTls(MYSQL& client, const StoreTls& tls) {
  if (tls.mode == TlsMode::kOff) return;
  const my_bool on = 1;
  mysql_options(&client, MYSQL_OPT_SSL_ENFORCE, &on);
  if (tls.verifies()) {
    mysql_options(&client, MYSQL_OPT_SSL_CA, tls.ca_file.c_str());
    ReplaceCheck(client, tls.mode);
  }
  // Without this option, the library connects without TLS if the server does not offer it.
  if (tls.mode == TlsMode::kVerifyFull) {
    mysql_options(&client, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on);
  }
  if (tls.cert_file.empty()) return;
  mysql_options(&client, MYSQL_OPT_SSL_CERT, tls.cert_file.c_str());
  mysql_options(&client, MYSQL_OPT_SSL_KEY, tls.key_file.c_str());
}

}  // namespace firn
