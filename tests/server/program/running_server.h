#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {

// A real firn-server on free loopback ports, and an HTTP client for both of them.
class RunningServer {
 public:
  // Starts it with `flags`, its addresses and its state folder. `wrapper` is a command that runs
  // it, such as {"prlimit", "--nofile=64"}.
  RunningServer(const std::string& state_dir, std::vector<std::string> flags,
                std::vector<std::string> wrapper = {});

  // The memory file system that contains its grant.
  std::string grant_dir() const { return memory_.path(); }

  // Kills it with SIGKILL, and starts it again with the same flags.
  void Kill();
  void StartAgain();

  // Waits until /readyz says so. Returns false if it ended or took too long.
  bool BecomesReady();
  // Waits until its machine id is on disk, and no write of it is pending. A separate thread writes
  // it after the claim: a server that is killed before that starts as if for the first time.
  // Returns false after a timeout.
  bool KeepsItsHint() const;

  struct Answer {
    int status = 0;  // 0: no connection, or no answer
    std::string body;
  };
  Answer Get(const std::string& target) const { return Ask(port_, "GET", target); }
  Answer Admin(const std::string& target) const { return Ask(admin_port_, "GET", target); }
  Answer PostAdmin(const std::string& target) const { return Ask(admin_port_, "POST", target); }

  // Requests an id of the tag `default`, and fails the test without one.
  int64_t TakeId() const;

  // Returns the value of a series in /metrics, labels included; -1 if it is missing.
  int64_t Metric(const std::string& series) const;

  // Returns the memory in use by its process.
  int64_t ResidentKib() const;

  // host:port of its public side, as clients know it.
  std::string address() const;
  int port() const { return port_; }
  Process& process() { return *process_; }
  std::string log() const;

 private:
  static Answer Ask(int port, const std::string& verb, const std::string& target);

  TempDir memory_{kMemoryDir};
  std::string state_dir_;
  int port_, admin_port_;
  std::string log_file_, suppressions_file_;
  std::vector<std::string> command_;
  std::optional<Process> process_;
};

}  // namespace firn
