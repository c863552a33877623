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

// A real database server from Debian's package on a free loopback port, with its files in a
// throw-away folder. It has an empty database `ids`, and an account for programs over TCP; the test
// itself connects as the owner through the socket. Two of them form a primary and a replica:
//
//     auto replica = primary->StartReplica();
//     ASSERT_EQ((*replica)->AwaitCaughtUp(*primary), Status());
//     primary->Kill();
//     ASSERT_EQ((*replica)->Promote(), Status());
//
// One thread, which must live as long as the object.
class SqlServer {
 public:
  static constexpr const char* kDatabase = "ids";
  static constexpr const char* kUser = "firn";
  static constexpr const char* kPassword = "a secret of tests";

  using Row = std::vector<std::string>;  // "NULL" for NULL

  virtual ~SqlServer() = default;

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return process_->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  // A file with "user:password" of the account, readable by this user only.
  std::string credentials_file() const { return folder_ / "credentials"; }

  // Runs one statement in `ids`, as the owner.
  Status Run(const std::string& sql) { return Query(sql).status(); }
  virtual Result<std::vector<Row>> Query(const std::string& sql) = 0;

  // Serves TLS with this certificate from now on, and refuses programs that connect without TLS;
  // with `client_ca`, also those without a certificate of that authority.
  virtual Status RequireTls(const std::string& cert, const std::string& key,
                            const std::string& client_ca = {}) = 0;

  // --- replication ------------------------------------------------------------------------------

  // A read-only replica that applies all changes of this server.
  virtual Result<std::unique_ptr<SqlServer>> StartReplica() = 0;
  // Waits until everything that `primary` did until now has been applied here.
  virtual Status AwaitCaughtUp(SqlServer& primary) = 0;
  // Later changes do not arrive here until Promote discards them.
  virtual Status StopFollowing() = 0;
  // Detaches from its primary and accepts writes.
  virtual Status Promote() = 0;

  // --- faults -----------------------------------------------------------------------------------

  // SIGKILL; its files remain. Its child processes, which PostgreSQL has for each session, are
  // killed too: they would answer for a moment more.
  void Kill();
  // Starts it again on its files and waits until it serves.
  virtual Status Restart() = 0;
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

  // Keeps the folder with the log for debugging.
  void KeepFiles() { folder_.Keep(); }

 protected:
  SqlServer() : port_(FreePort()) {}

  Status WriteCredentials() const;

  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

// Returns the first column of the first row, or the failure.
inline std::string First(const Result<std::vector<SqlServer::Row>>& rows) {
  if (!rows.ok()) return rows.status().message();
  return rows->empty() ? "" : rows->front().front();
}

}  // namespace firn
