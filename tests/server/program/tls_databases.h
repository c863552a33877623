#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "tests/support/tls_authority.h"

namespace firn {

// The fault in a database's TLS for a server with the page's settings.
enum class TlsFault : uint8_t {
  kNone,
  kAuthority,  // the server trusts another authority
  kName,       // the certificate has another name
  kExpired,
  kNoTls,                // the database does not use TLS
  kNoClientCertificate,  // the database requires one
};
std::string_view NameOf(TlsFault fault);

// A real database that requires TLS and has no accounts or tables yet, to be set up as
// DATABASES.md says. MongoDB's is FerretDB, whose embedded form has no accounts.
class TlsDatabase {
 public:
  virtual ~TlsDatabase() = default;

  // The title of its section of the page.
  virtual std::string title() const = 0;
  // Starts it with the certificate `server`, `elsewhere` or `expired` of the authority.
  virtual Status Start(const TlsAuthority& authority, TlsFault fault) = 0;
  // The port for programs.
  virtual int port() const = 0;
  // Functions that make the page's commands connect to it, as an administrator.
  virtual std::string shell() const = 0;
  // Whether it has accounts, so that the page's commands can be run.
  virtual bool has_accounts() const { return true; }
  // Commands that cause the fault, to run after those of the page.
  virtual std::string after() const { return {}; }

  // Commands that take one right away from the account, each with the word that names the right in
  // the error.
  struct Right {
    std::string take_away, named;
  };
  virtual std::vector<Right> rights() const { return {}; }
};

// `kind` is a store's.
std::unique_ptr<TlsDatabase> MakeTlsDatabase(const std::string& kind);

}  // namespace firn
