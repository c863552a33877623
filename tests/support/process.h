#pragma once

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/base/units.h"

namespace firn {

// A real program that a test controls. It is killed by its pid, and reaped, with the object; it
// also dies with the thread that started it, in case the test is killed. Owned by that thread.
class Process {
 public:
  struct Options {
    std::string directory{};  // working directory; empty: this process's own
    std::map<std::string, std::string> environment{};  // added to this process's own
    std::string output_file{};  // stdout and stderr, appended; empty: /dev/null
  };

  // `command[0]` is searched in PATH. Ends the test program if no process can be started at all; a
  // missing program results in exit code 127.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options()) {}
  Process(const std::vector<std::string>& command, const Options& options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool Running();

  // Sends a signal; does nothing if it has ended.
  void Signal(int signal);
  void Kill() { Signal(SIGKILL); }
  // SIGSTOP; returns once every thread of it has stopped.
  void Pause();
  void Resume() { Signal(SIGCONT); }

  // Returns the exit code, or 128 + the signal that ended it; empty if it still runs after
  // `patience`.
  std::optional<int> Wait(Milliseconds patience);

 private:
  void Reap(int options);

  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

// The result of a program that ran to its end.
struct Finished {
  int exit_code = -1;  // as Process::Wait says; -1: killed after `patience`
  std::string out;
  std::string err;
};
Finished RunToEnd(const std::vector<std::string>& command,
                  Milliseconds patience = Milliseconds(60'000));

// Runs the built `firn` with `words`, followed by `flags`.
Finished RunFirn(const std::vector<std::string>& words, const std::vector<std::string>& flags = {});

// The folder of the built programs: that of the running test.
std::string BuiltProgram(const std::string& name);

// Returns a loopback TCP port on which no program listens, and holds it until this program ends: no
// other call returns it, in this program or another, in C++, Python or shell. It is below the range
// from which the kernel takes the ports of outgoing connections, so it stays free while a server
// restarts.
int FreePort();

// A timeout that only a failure reaches.
inline constexpr Milliseconds kPatience{60'000};

// Polls until `holds` returns true, for at most `patience`. Returns whether it did.
template <typename Condition>
bool Eventually(Milliseconds patience, Condition holds);

void SleepBriefly();
BootMs TestNow();

template <typename Condition>
bool Eventually(Milliseconds patience, Condition holds) {
  for (const BootMs give_up = TestNow() + patience; !holds(); SleepBriefly()) {
    if (TestNow() >= give_up) return holds();
  }
  return true;
}

}  // namespace firn
