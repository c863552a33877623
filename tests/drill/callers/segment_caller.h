#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "common/base/units.h"
#include "tests/drill/callers/stub_caller.h"
#include "tests/drill/callers/takings.h"

namespace firn {

// Counts of call results. A value.
struct CallCounts {
  int64_t answered = 0;
  int64_t refused = 0;  // by the server, with a reason
  int64_t broken = 0;   // calls without a connection, or whose connection was lost
  Milliseconds longest{0};
  std::string last_trouble{};

  CallCounts& operator+=(const CallCounts& more);
};

// Requests numbers of one tag after another from one server, with the generated stub, on its own
// thread from construction to Stop. It retries a refused call later, and replaces a connection that
// ended. It adds each number to the tag's takings, which must outlive it.
class SegmentCaller {
 public:
  struct Options {
    int port = 0;
    int64_t count = 1;      // numbers per call
    Milliseconds pause{0};  // between calls
  };
  using TakingsByTag = std::map<std::string, Takings*>;

  SegmentCaller(Options options, TakingsByTag takings);
  ~SegmentCaller();  // stops
  SegmentCaller(const SegmentCaller&) = delete;
  SegmentCaller& operator=(const SegmentCaller&) = delete;

  void Stop();

  // Returns the counts by tag since the last TakeCounts. Any thread.
  std::map<std::string, CallCounts> TakeCounts();

 private:
  void Run();
  void Call(const std::string& tag, Takings& takings);
  void Note(const std::string& tag, const std::function<void(CallCounts&)>& change);

  const Options options_;
  const TakingsByTag takings_;
  std::mutex mutex_;
  std::map<std::string, CallCounts> counts_;  // under mutex_
  std::atomic<bool> stop_{false};
  StubCaller stub_;  // used by the thread only
  std::thread thread_;
};

}  // namespace firn
