#pragma once

#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace firn {

// An authority with certificates that it has signed, made by the openssl command.
class TlsAuthority {
 public:
  explicit TlsAuthority(std::string name);

  // Signs a new certificate; its files are `who`.key and `who`.crt. `names` are its
  // subjectAltName, as OpenSSL reads it: "DNS:server.example,IP:127.0.0.1".
  void Sign(const std::string& who, const std::string& names = {});
  // One that is good for so long from now on; has it ended already, for less than nothing. False
  // where there is no libfaketime.
  bool SignForSeconds(const std::string& who, int seconds, const std::string& names = {});

  // The authority's own is ca.crt.
  std::string File(const std::string& name) const { return dir_ / name; }

 private:
  void Request(const std::string& who);
  void Grant(const std::string& who, const std::string& names,
             const std::vector<std::string>& wrapper);

  TempDir dir_;
  std::string name_;
};

}  // namespace firn
