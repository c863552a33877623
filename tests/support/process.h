#pragma once

#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "common/base/units.h"

namespace firn {

// A real program under a test's hands. Killed by its pid, and reaped, when the object goes; dies
// with the thread that started it, too, should the test be killed. Owned by that thread.
class Process {
 public:
  struct Options {
    std::string directory{};                           // to run in; empty: this process's own
    std::map<std::string, std::string> environment{};  // on top of this process's own
    std::string output_file{};  // stdout and stderr, appended; empty: /dev/null
  };

  // `command[0]` is looked for in PATH. Ends the test program when it cannot be started at all; a
  // program that is not there shows as exit code 127.
  explicit Process(const std::vector<std::string>& command) : Process(command, Options()) {}
  Process(const std::vector<std::string>& command, const Options& options);
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;

  pid_t pid() const { return pid_; }
  bool Running();

  // Sends a signal; nothing when it has ended.
  void Signal(int signal);
  void Kill() { Signal(SIGKILL); }
  // SIGSTOP; returns once every thread of it stands still.
  void Pause();
  void Resume() { Signal(SIGCONT); }

  // The exit code, or 128 + the signal that ended it; empty when it still runs after `patience`.
  std::optional<int> Wait(Milliseconds patience);

 private:
  void Reap(int options);

  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

// A program run to its end.
struct Finished {
  int exit_code = -1;  // as Process::Wait says; -1: killed after `patience`
  std::string out;
  std::string err;
};
Finished RunToEnd(const std::vector<std::string>& command,
                  Milliseconds patience = Milliseconds(60'000));

// Where the build puts its programs: the directory of the running test.
std::string BuiltProgram(const std::string& name);

// Returns a loopback TCP port on which no program listens, and holds it until this program ends: no
// other call returns it, in this program or another, in C++, Python or shell. It is below the range from
// which the kernel takes the ports of outgoing connections, so it stays free while a server restarts.
int FreePort();

// What a test waits for comes much sooner.
inline constexpr Milliseconds kPatience{60'000};

// Polls until `holds`, for at most `patience`. True when it came to hold.
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
