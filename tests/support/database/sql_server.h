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
// throw-away folder. There is an empty database `ids`, and an account for programs over TCP; the
// test itself speaks as the owner through the socket. Two of them make a primary and a replica:
//
//     auto replica = primary->StartReplica();
//     ASSERT_EQ((*replica)->AwaitCaughtUp(*primary), Status());
//     primary->Kill();
//     ASSERT_EQ((*replica)->Promote(), Status());
//
// One thread; the thread that makes it must live as long as it.
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

  // One statement in `ids`, as the owner.
  Status Run(const std::string& sql) { return Query(sql).status(); }
  virtual Result<std::vector<Row>> Query(const std::string& sql) = 0;

  // --- replication ------------------------------------------------------------------------------

  // A read-only replica that repeats all that this server has ever done.
  virtual Result<std::unique_ptr<SqlServer>> StartReplica() = 0;
  // Whatever `primary` did until now is here, too.
  virtual Status AwaitCaughtUp(SqlServer& primary) = 0;
  // What is done there from now on arrives here no more, until Promote throws it away.
  virtual Status StopFollowing() = 0;
  // Forgets its primary and takes writes.
  virtual Status Promote() = 0;

  // --- faults -----------------------------------------------------------------------------------

  // SIGKILL; its files stay. Processes that it had made, as PostgreSQL does for each session, are
  // gone, too: they would answer for a moment more.
  void Kill();
  // Starts it again on its files and waits until it serves.
  virtual Status Restart() = 0;
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

  // Leaves the folder with the log, for whoever has to find out what went wrong.
  void KeepFiles() { folder_.Keep(); }

 protected:
  SqlServer() : port_(FreePort()) {}

  Status WriteCredentials() const;

  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

// What the first of these rows begins with; or what went wrong.
inline std::string First(const Result<std::vector<SqlServer::Row>>& rows) {
  if (!rows.ok()) return rows.status().message();
  return rows->empty() ? "" : rows->front().front();
}

}  // namespace firn
