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

// A real MariaDB from Debian's package on a free loopback port, with its files in a throw-away
// folder. There is an empty database `ids`, and an account for programs over TCP; the test itself
// speaks as root through the socket. Two of them make a primary and a replica:
//
//     auto primary = MariaDb::Start();
//     auto replica = MariaDb::Start();
//     ASSERT_TRUE((*replica)->Follow(**primary).ok());
//     ASSERT_TRUE((*replica)->AwaitCaughtUp(**primary).ok());
//     (*primary)->Kill();
//     ASSERT_TRUE((*replica)->Promote().ok());
//
// One thread; the thread that makes it must live as long as it.
class MariaDb {
 public:
  static constexpr Milliseconds kPatience{60'000};
  static constexpr const char* kDatabase = "ids";
  static constexpr const char* kUser = "firn";
  static constexpr const char* kPassword = "a secret of tests";

  using Row = std::vector<std::string>;  // "NULL" for NULL

  // Serving, or the reason why not. The first one of a program takes a second more: it makes the
  // files that the others copy.
  static Result<std::unique_ptr<MariaDb>> Start();

  int port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  pid_t pid() const { return process_->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  // A file with "user:password" of the account, readable by this user only.
  std::string credentials_file() const { return folder_ / "credentials"; }

  // One statement in `ids`, as root.
  Status Run(const std::string& sql) { return Query(sql).status(); }
  Result<std::vector<Row>> Query(const std::string& sql);

  // --- replication ------------------------------------------------------------------------------

  // Becomes a read-only replica that repeats all that `primary` has ever done.
  Status Follow(const MariaDb& primary);
  // Whatever `primary` did until now is here, too.
  Status AwaitCaughtUp(MariaDb& primary);
  // What is done there from now on arrives here no more, until Promote throws it away.
  Status StopFollowing() { return Run("STOP SLAVE"); }
  // Forgets its primary and takes writes.
  Status Promote();

  // --- faults -----------------------------------------------------------------------------------

  // SIGKILL; its files stay.
  void Kill() { process_.reset(); }
  // Starts it again on its files and waits until it serves.
  Status Restart();
  // SIGSTOP and SIGCONT.
  void Stop() { process_->Pause(); }
  void Continue() { process_->Resume(); }

  // Leaves the folder with the log, for whoever has to find out what went wrong.
  void KeepFiles() { folder_.Keep(); }

 private:
  MariaDb() : port_(FreePort()) {}

  Status AwaitReady();
  std::vector<std::string> Command() const;

  const int port_;
  TempDir folder_;
  std::optional<Process> process_;
};

}  // namespace firn
