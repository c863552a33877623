#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace firn {

// An authority with certificates that it has signed, created by the openssl command.
class TlsAuthority {
 public:
  explicit TlsAuthority(std::string name);

  // Signs a new certificate; its files are `who`.key and `who`.crt. `names` are its
  // subjectAltName, as OpenSSL reads it: "DNS:server.example,IP:127.0.0.1".
  void Sign(const std::string& who, const std::string& names = {});
  // Signs a certificate that is valid for `seconds` from now on; already expired if negative.
  // Returns false without libfaketime.
  bool SignForSeconds(const std::string& who, int seconds, const std::string& names = {});

  // The authority's own certificate is ca.crt.
  std::string File(const std::string& name) const { return dir_ / name; }

 private:
  void Request(const std::string& who);
  void Grant(const std::string& who, const std::string& names,
             const std::vector<std::string>& wrapper);

  TempDir dir_;
  std::string name_;
};

}  // namespace firn
