#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "common/base/atomic.h"
#include "server/issue/issue_call.h"
#include "server/issue/runs.h"

namespace firn {

class WaitingLine;

// A call's place in a line. It is valid until the call or the call's patience ends.
struct LinePlace {
  const WaitingLine* const line;
  const Method method;
  const std::chrono::microseconds until;
  // Guarded by the line's mutex.
  int64_t missing;
  Runs runs{};  // taken for the call so far
};

// A queue of calls that need more ids than a strategy has at once. The calls are served one after
// another, in the order of arrival: if they shared the ids, each would get a part and time out. An
// attempt of any call serves the first call, so no ids are lost while that call's thread is busy.
// Calls own their places, so they need not leave the line explicitly. Thread-safe.
class WaitingLine {
 public:
  using Micros = std::chrono::microseconds;

  // The strategy has at most `ids` ids in each `time`.
  WaitingLine(int64_t ids, Micros time);

  // Gives the call a place if it has none, or returns a refusal if it would wait for too long.
  // `at_best` is the time that the call needs if it is alone.
  std::optional<Refusal> Join(IssueCall& call, Micros now, Micros at_best);

  // Distributes ids. `take(place)` returns a run for the place, empty if no more ids are available
  // now.
  template <typename Take>
  void Serve(Micros now, Take take) {
    const std::lock_guard lock(mutex_);
    while (!places_.empty()) {
      const auto place = places_.front().lock();
      if (IsWaiting(place.get(), now)) {
        const IdRun run = take(*place);
        if (run.count == 0) break;
        place->runs.Add(run);
        place->missing -= run.count;
        Measure(run.count, now);
        if (place->missing > 0) continue;
      }
      places_.pop_front();
    }
  }

  // If all ids of the call have been taken, moves them to the call and returns true.
  bool Finish(IssueCall& call);

  // Estimated time until the call is first in line, at most a few milliseconds.
  Micros WaitOf(const IssueCall& call) const;

  size_t length() const;

 private:
  static bool IsWaiting(const LinePlace* place, Micros now) {
    return place != nullptr && place->until >= now;
  }
  Micros TimeFor(int64_t ids) const;
  void Measure(int64_t got, Micros now);

  mutable Mutex mutex_;  // guards the members below
  std::deque<std::weak_ptr<LinePlace>> places_;
  // The number of ids that the line got recently, and in what time.
  int64_t ids_;
  Micros time_;
  Micros since_{0};  // time_ includes the time up to this
};

}  // namespace firn
