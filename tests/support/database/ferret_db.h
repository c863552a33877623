#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {

// A real FerretDB, which speaks MongoDB's protocol, on a free loopback port with its files in a
// throw-away folder: the Go program in the folder ferretdb beside this file. One thread, which must
// live as long as the object.
class FerretDb {
 public:
  // Certificate and key of the server; empty: no TLS. With `client_ca` it refuses programs without
  // a certificate of that authority.
  struct Tls {
    std::string cert{};
    std::string key{};
    std::string client_ca{};
  };

  // Whether the program could be built: this requires Go and its modules.
  static bool IsBuilt();

  // Returns a serving database, or why it does not serve.
  static Result<std::unique_ptr<FerretDb>> Start(Tls tls);
  static Result<std::unique_ptr<FerretDb>> Start() { return Start({}); }

  int port() const { return port_; }

  // SIGKILL; its files remain.
  void Kill() { process_.reset(); }
  // Starts it again on its files and waits until it serves.
  Status Restart();
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

 private:
  explicit FerretDb(Tls tls) : tls_(std::move(tls)), port_(FreePort()) {}

  const Tls tls_;
  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

}  // namespace firn
