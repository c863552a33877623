#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The checks on a connection to a store's server, with PostgreSQL's names.
enum class TlsMode : uint8_t {
  kOff,         // no TLS
  kPrefer,      // TLS if the server offers it; checks no certificate
  kRequire,     // TLS or no connection; checks no certificate
  kVerifyCa,    // also: a trusted authority has signed the server's certificate
  kVerifyFull,  // also: the certificate has the name or address that was connected to
};
std::optional<TlsMode> ParseTlsMode(std::string_view word);
std::string_view TlsModeWord(TlsMode mode);

// The TLS settings of a store.
struct StoreTls {
  TlsMode mode = TlsMode::kOff;
  std::string
      ca_file{};  // trusted CAs, PEM; required by kVerifyCa and kVerifyFull, otherwise empty
  std::string cert_file{};  // the client's certificate and key, PEM; both or none
  std::string key_file{};

  bool verifies() const { return mode == TlsMode::kVerifyCa || mode == TlsMode::kVerifyFull; }

  // Checks that the files are usable; kNotFound, kInvalid or kDenied otherwise. The error names the
  // file, which errors of client libraries often do not. Files are re-read for each connection.
  Status CheckFiles() const;

  // The remedy to print if a server requires a client certificate and none is set.
  static constexpr const char* kSetCertificate = "; set tls_cert and tls_key";

  // Returns the error for a failed handshake, with the names of the relevant settings.
  Status Failed(const std::string& address, const std::string& why) const;
  // Like Failed, for a server that did not answer or that closed the connection (`closed`).
  // kUnavailable, because a server that hangs or stops has the same symptom.
  Status Unfinished(const std::string& address, bool closed) const;

 private:
  std::string Describe(const std::string& address, const std::string& why) const;
};

}  // namespace firn
