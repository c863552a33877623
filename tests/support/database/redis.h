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
  // Off, it comes back from a kill as empty as it began.
  bool append_only = true;
  // With append_only: each command is on disk before it is answered, else once a second.
  bool sync_always = false;
  std::string password{};  // empty: none
  // A node of a Redis Cluster, which knows no other one yet.
  bool cluster = false;
};

// A real Redis from Debian's package on a free loopback port, with its files in a throw-away
// folder. One thread; the thread that makes it must live as long as it.
class Redis {
 public:
  // Serving, or the reason why not.
  static Result<std::unique_ptr<Redis>> Start(RedisOptions options = {});

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return process_->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  // A file with the password, readable by this user only.
  std::string credentials_file() const { return folder_ / "credentials"; }

  // One command; its answer as text, lists one item a line. A refusal is a failure.
  Result<std::string> Run(const std::vector<std::string>& words);
  // A field of INFO.
  std::string Info(const std::string& field);

  // --- replication ------------------------------------------------------------------------------

  // Becomes a replica, and waits until it has what `primary` has now.
  Status Follow(Redis& primary);
  Status Promote() { return Run({"REPLICAOF", "NO", "ONE"}).status(); }

  // Both are of a cluster: becomes a node of it that keeps nothing, while `other` keeps all.
  Status JoinCluster(Redis& other);

  // --- faults -----------------------------------------------------------------------------------

  Status Flush() { return Run({"FLUSHALL"}).status(); }
  // SIGKILL; its files stay.
  void Kill() { process_.reset(); }
  // Starts it again on its files and waits until it serves.
  Status Restart();
  // Its files are lost; it comes back empty.
  Status Replace();
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

 private:
  explicit Redis(RedisOptions options) : options_(std::move(options)), port_(FreePort()) {}

  const RedisOptions options_;
  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

}  // namespace firn
