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

// A client as a program has it that knows the generated stubs and a list of servers, nothing more:
// it stays with one, and goes to the next when that one refuses or its connection ends. Asks in a
// thread of its own, from its making to Stop, and writes down every id that it gets.
class ReconnectingClient {
 public:
  // A call fails when nobody has answered it with an id by then.
  static constexpr Milliseconds kCallPatience{30'000};

  struct Counts {
    int64_t calls = 0;        // that ended with an id
    int64_t failed = 0;       // that ended without
    int64_t refused = 0;      // answers that sent it to the next server
    int64_t lost = 0;         // connections that ended before an answer
    int64_t unreachable = 0;  // servers that took no connection
    Milliseconds longest_call{0};
  };

  // Begins with server `first` of those on loopback.
  ReconnectingClient(std::vector<int> ports, size_t first);
  ~ReconnectingClient();  // stops
  ReconnectingClient(const ReconnectingClient&) = delete;
  ReconnectingClient& operator=(const ReconnectingClient&) = delete;

  void Stop();

  // Any thread, any time.
  int64_t calls() const { return calls_; }

  // After Stop.
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
  StubCaller stub_;  // the thread's own
  std::thread thread_;
};

}  // namespace firn
