#pragma once

#include <cstdint>
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

struct ZooKeeperOptions {
  int members = 1;
  // ZooKeeper's unit of time. The minimum session timeout is twice this.
  Milliseconds tick{200};
  // Off: writes survive the death of the program, not of the machine: enough for most tests.
  bool force_sync = false;
};

// A real ZooKeeper from Debian's package: one server or an ensemble, on free loopback ports, with
// its files in a throw-away folder, and its faults. Members are counted from 0. One thread, which
// must live as long as the object.
//
//     Result<std::unique_ptr<ZooKeeper>> zk = ZooKeeper::Start({.members = 3});
//     ... (*zk)->hosts() ...
//     (*zk)->Kill(*(*zk)->Leader());
//     ASSERT_TRUE((*zk)->AwaitReady().ok());
class ZooKeeper {
 public:
  // Returns a serving ensemble, or why it does not serve, with the folder of the logs. Each member
  // takes about a second of processor time and 60 MB.
  static Result<std::unique_ptr<ZooKeeper>> Start(ZooKeeperOptions options = {});

  int size() const { return static_cast<int>(members_.size()); }
  int port(int member) const { return members_.at(At(member)).client_port; }
  pid_t pid(int member) const { return members_.at(At(member)).process->pid(); }
  const std::filesystem::path& folder() const { return folder_.path(); }

  // "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3"
  std::string hosts() const;

  // --- faults -----------------------------------------------------------------------------------

  // SIGKILL; its files remain.
  void Kill(int member);
  // Starts it again on its files. Ok as soon as the program runs; AwaitReady waits for service.
  Status Restart(int member);
  // SIGSTOP and SIGCONT.
  void Stop(int member);
  void Continue(int member);

  void KillAll();
  Status RestartAll();

  // Loses the data: kills all, removes their data, starts all, waits until they serve.
  Status Wipe();

  // Makes a backup, and restores it as a careless operator does. Both kill all, start all and wait
  // until they serve. One backup at a time; the second replaces the first.
  Status SaveData();
  Status RestoreData();

  // Sets a node's version as if the node had been set that often; kills all, starts all, waits
  // until they serve.
  Status SetVersion(const std::string& path, int64_t version);

  // --- state ------------------------------------------------------------------------------------

  // The leader, or the only member; empty if no member reports to be one now.
  std::optional<int> Leader();

  // "leader", "follower", "standalone"; empty when it does not serve now.
  std::string Mode(int member);

  // The answer to one of ZooKeeper's four-letter words ("srvr", "cons", "wchp"); empty if there is
  // none.
  std::string Ask(int member, const std::string& word) const;

  // Waits until every running member serves, one of them as leader.
  Status AwaitReady(Milliseconds patience = kPatience);

  // Keeps the folder with the logs for debugging.
  void KeepFiles() { folder_.Keep(); }

 private:
  struct Member {
    int client_port;
    int quorum_port;
    int election_port;
    std::filesystem::path folder;
    std::optional<Process> process{};
  };

  explicit ZooKeeper(const ZooKeeperOptions& options) : options_(options) {}

  static size_t At(int member) { return static_cast<size_t>(member); }
  Status WriteFiles(int member) const;
  Status StartAll();
  bool Ready();

  const ZooKeeperOptions options_;
  TempDir folder_;
  std::vector<Member> members_;
};

}  // namespace firn
