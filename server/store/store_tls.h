#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// What a connection to a store's server must prove. The names are PostgreSQL's.
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
  std::string ca_file{};    // trusted authorities, PEM; set exactly if the mode verifies
  std::string cert_file{};  // the client's certificate, PEM, and its key; both or none
  std::string key_file{};

  bool verifies() const { return mode == TlsMode::kVerifyCa || mode == TlsMode::kVerifyFull; }

  // Checks that the files are usable. The error names the file, which client libraries often do
  // not. kNotFound, kInvalid or kDenied. Files are re-read for each connection.
  Status CheckFiles() const;

  // The remedy if a server requires a client certificate and none is set.
  static constexpr const char* kSetCertificate = "; set tls_cert and tls_key";

  // Returns the error of a failed handshake, with the settings that it depends on.
  Status Failed(const std::string& address, const std::string& why) const;
  // Like Failed for a server that did not answer or closed the connection (`closed`). kUnavailable,
  // because a server that hangs or stops looks the same.
  Status Unfinished(const std::string& address, bool closed) const;

 private:
  std::string Describe(const std::string& address, const std::string& why) const;
};

}  // namespace firn
