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
  // Starts it with `flags` besides its addresses and its state folder. `wrapper` is a command that
  // runs it, such as {"prlimit", "--nofile=64"}.
  RunningServer(const std::string& state_dir, std::vector<std::string> flags,
                std::vector<std::string> wrapper = {});

  // Memory in which its grant lies.
  std::string grant_dir() const { return memory_.path(); }

  // Kills it the hard way, and starts it again as it was.
  void Kill();
  void StartAgain();

  // Waits until /readyz says so. False when it ended or took too long.
  bool BecomesReady();
  // Waits until it is on disk which machine id it holds, and nothing is on its way there. A thread
  // of its own writes that, after the claim: whoever is killed before starts as if for the first
  // time.
  bool KeepsItsHint() const;

  struct Answer {
    int status = 0;  // 0: no connection, or no answer
    std::string body;
  };
  Answer Get(const std::string& target) const { return Ask(port_, "GET", target); }
  Answer Admin(const std::string& target) const { return Ask(admin_port_, "GET", target); }
  Answer PostAdmin(const std::string& target) const { return Ask(admin_port_, "POST", target); }

  // What /metrics says of a series, labels included; -1 when it does not have it.
  int64_t Metric(const std::string& series) const;

  // The memory of its process that is in use.
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
