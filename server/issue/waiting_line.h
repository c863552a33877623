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

// A call's place in a line. Ends with its call, or when the call's patience ends.
struct LinePlace {
  const WaitingLine* const line;
  const Method method;
  const std::chrono::microseconds until;
  // Guarded by the line's mutex.
  int64_t missing;
  Runs runs{};  // taken for the call so far
};

// The calls that need more ids than a strategy has at once. They are served one after another, in
// the order of their arrival: if they shared the ids, each would get a part and time out. Every
// attempt of any call serves the first one, so no ids are lost while that call's thread is busy.
// Calls own their places, so none has to leave the line. Thread-safe.
class WaitingLine {
 public:
  using Micros = std::chrono::microseconds;

  // A strategy has at most `ids` in each `time`.
  WaitingLine(int64_t ids, Micros time);

  // Gives the call a place if it has none; refuses it if it would wait for too long. `at_best` is
  // the time that it needs if it is alone.
  std::optional<Refusal> Join(IssueCall& call, Micros now, Micros at_best);

  // Distributes ids: `take(place)` returns a run for the place, empty if no more ids are available
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

  // Moves the ids to the call if all of them are there.
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
  // The ids that the line got recently, and the time in which it got them.
  int64_t ids_;
  Micros time_;
  Micros since_{0};  // time up to here is included in time_
};

}  // namespace firn
