#include "server/store/store_tls.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "common/base/cat.h"
#include "common/base/secret_file.h"

namespace firn {
namespace {

struct ModeWord {
  TlsMode mode;
  std::string_view word;
};
constexpr std::array<ModeWord, 5> kModes{{{TlsMode::kOff, "off"},
                                          {TlsMode::kPrefer, "prefer"},
                                          {TlsMode::kRequire, "require"},
                                          {TlsMode::kVerifyCa, "verify-ca"},
                                          {TlsMode::kVerifyFull, "verify-full"}}};

// `key` is the name of the setting with the path.
Status CheckCertificates(std::string_view key, const std::string& path) {
  constexpr size_t kBytesMax = 64 << 10;
  std::error_code error;
  std::ifstream file;
  if (std::filesystem::is_regular_file(path, error)) file.open(path, std::ios::binary);
  if (!file.is_open()) return NotFound(Cat(key, " ", path, ": cannot open the file"));
  std::string text(kBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.find("-----BEGIN ") != text.npos) return {};
  return Invalid(Cat(key, " ", path, ": the file contains no PEM certificate"));
}

}  // namespace

std::optional<TlsMode> ParseTlsMode(std::string_view word) {
  for (const ModeWord& known : kModes) {
    if (known.word == word) return known.mode;
  }
  return std::nullopt;
}

std::string_view TlsModeWord(TlsMode mode) { return kModes[static_cast<size_t>(mode)].word; }

Status StoreTls::CheckFiles() const {
  if (!ca_file.empty()) FIRN_TRY(CheckCertificates("tls_ca", ca_file));
  if (cert_file.empty()) return {};
  FIRN_TRY(CheckCertificates("tls_cert", cert_file));
  return CheckSecretFile(key_file).WithContext("tls_key");
}

std::string StoreTls::Describe(const std::string& address, const std::string& why) const {
  std::string settings = Cat("tls = ", TlsModeWord(mode));
  if (!ca_file.empty()) settings += Cat(", tls_ca = ", ca_file);
  if (!cert_file.empty()) settings += Cat(", tls_cert = ", cert_file);
  return Cat(address, ": TLS failed: ", why, " (", settings, ")");
}

Status StoreTls::Failed(const std::string& address, const std::string& why) const {
  // TLS 1.3 and 1.2 name the missing certificate differently.
  const bool requires_certificate =
      why.find("certificate required") != why.npos || why.find("handshake failure") != why.npos;
  const bool shows_none = cert_file.empty() && requires_certificate;
  return Denied(
      Cat(Describe(address, why),
          shows_none ? kSetCertificate : "; check the server's certificate and these settings"));
}

Status StoreTls::Unfinished(const std::string& address, bool closed) const {
  if (!closed) {
    return Unavailable(Cat(Describe(address, "no answer to the handshake"),
                           "; check that the server uses TLS and does not hang"));
  }
  return Unavailable(Cat(Describe(address, "the server closed the connection"),
                         cert_file.empty()
                             ? Cat(kSetCertificate, " if the server requires a client certificate")
                             : "; the server's log has the reason"));
}

}  // namespace firn
