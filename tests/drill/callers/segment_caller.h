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

// What became of calls. A value.
struct CallCounts {
  int64_t answered = 0;
  int64_t refused = 0;  // by the server, with a reason
  int64_t broken = 0;   // no connection, or none any more
  Milliseconds longest{0};
  std::string last_trouble{};

  CallCounts& operator+=(const CallCounts& more);
};

// Asks one server for numbers of one tag after another, through the generated stub, in a thread of
// its own from its making to Stop. What was refused is asked for again by a later call; a
// connection that ended is made anew. Each number that it gets goes to the tag's takings, which
// outlive it.
class SegmentCaller {
 public:
  struct Options {
    int port = 0;
    int64_t count = 1;      // numbers a call
    Milliseconds pause{0};  // between calls
  };
  using TakingsByTag = std::map<std::string, Takings*>;

  SegmentCaller(Options options, TakingsByTag takings);
  ~SegmentCaller();  // stops
  SegmentCaller(const SegmentCaller&) = delete;
  SegmentCaller& operator=(const SegmentCaller&) = delete;

  void Stop();

  // Counts by tag since the last call of this; any thread.
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
  StubCaller stub_;  // the thread's own
  std::thread thread_;
};

}  // namespace firn
