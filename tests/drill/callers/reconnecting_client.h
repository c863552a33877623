#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "common/base/units.h"
#include "tests/drill/callers/stub_caller.h"
#include "tests/drill/claimant/journal.h"

namespace firn {

// A client that uses only the generated stubs and a list of servers. It uses one server until that
// server refuses a call or the connection ends, then the next. It makes calls on its own thread,
// from construction to Stop, and records every id that it gets.
class ReconnectingClient {
 public:
  // Time after which a call without an id has failed.
  static constexpr Milliseconds kCallPatience{30'000};

  struct Counts {
    int64_t calls = 0;        // calls that ended with an id
    int64_t failed = 0;       // calls that ended without an id
    int64_t refused = 0;      // refusals, after each of which it used the next server
    int64_t lost = 0;         // connections that ended before an answer
    int64_t unreachable = 0;  // servers that refused the connection
    Milliseconds longest_call{0};
  };

  // Starts with server `first`. `ports`: the servers' ports on loopback.
  ReconnectingClient(std::vector<int> ports, size_t first);
  ~ReconnectingClient();  // stops
  ReconnectingClient(const ReconnectingClient&) = delete;
  ReconnectingClient& operator=(const ReconnectingClient&) = delete;

  void Stop();

  // May be called by any thread, at any time.
  int64_t calls() const { return calls_; }

  // Both must be called after Stop.
  const Counts& counts() const { return counts_; }
  const std::vector<IssuedRun>& runs() const { return runs_; }
  const std::vector<std::string>& failures() const { return failures_; }

 private:
  void Run();
  bool AskAny(BootMs give_up);

  const std::vector<int> ports_;
  size_t at_;
  Counts counts_;
  std::vector<IssuedRun> runs_;
  std::vector<std::string> failures_;
  std::atomic<int64_t> calls_{0};
  std::atomic<bool> stop_{false};
  StubCaller stub_;  // used by the thread only
  std::thread thread_;
};

}  // namespace firn
