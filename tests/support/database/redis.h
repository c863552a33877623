#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {

struct RedisOptions {
  // Off: after a kill it starts empty.
  bool append_only = true;
  // With append_only: each command is on disk before it is answered; otherwise once a second.
  bool sync_always = false;
  std::string password{};  // empty: none
  // A node of a Redis Cluster, which knows no other node yet.
  bool cluster = false;
  // Serves TLS with this certificate and its key on tls_port(), and requires a client certificate
  // of `client_ca`, if any. The plain port remains for the test itself.
  std::string tls_cert{};
  std::string tls_key{};
  std::string client_ca{};
};

// A real Redis from Debian's package on a free loopback port, with its files in a throw-away
// folder. One thread, which must live as long as the object.
class Redis {
 public:
  // Returns a serving Redis, or why it does not serve.
  static Result<std::unique_ptr<Redis>> Start(RedisOptions options = {});

  int port() const { return port_; }
  int tls_port() const { return tls_port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return process_->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  // A file with the password, readable by this user only.
  std::string credentials_file() const { return folder_ / "credentials"; }

  // Runs one command; returns its answer as text, lists one item per line. A refusal is a failure.
  Result<std::string> Run(const std::vector<std::string>& words);
  // A field of INFO.
  std::string Info(const std::string& field);

  // --- replication ------------------------------------------------------------------------------

  // Becomes a replica, and waits until it has everything that `primary` has now.
  Status Follow(Redis& primary);
  Status Promote() { return Run({"REPLICAOF", "NO", "ONE"}).status(); }

  // Both are in a cluster: becomes a node without slots, while `other` keeps all of them.
  Status JoinCluster(Redis& other);

  // --- faults -----------------------------------------------------------------------------------

  Status Flush() { return Run({"FLUSHALL"}).status(); }
  // SIGKILL; its files remain.
  void Kill() { process_.reset(); }
  // Starts it again on its files and waits until it serves.
  Status Restart();
  // Its files are lost; it starts empty.
  Status Replace();
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

 private:
  explicit Redis(RedisOptions options)
      : options_(std::move(options)), port_(FreePort()), tls_port_(FreePort()) {}

  const RedisOptions options_;
  const int port_;
  const int tls_port_;
  TempDir folder_;
  std::optional<Process> process_;
};

// A Redis Sentinel that watches one server under the name `ids` and promotes a replica soon after
// the server has failed.
class RedisSentinel {
 public:
  static constexpr const char* kMaster = "ids";

  explicit RedisSentinel(const Redis& server);

  int port() const { return port_; }
  // Whether it has found a replica, without which it promotes none.
  bool KnowsAReplica() const;

 private:
  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

}  // namespace firn
