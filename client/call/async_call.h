#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "client/call/call_plan.h"
#include "client/wire/ask.h"
#include "common/base/status.h"
#include "common/time/micros.h"

namespace firn::client {

class Pipeline;

// One asynchronous call on its way: what was asked, the plan that says whom to ask next, and whom
// it is asking now. AsyncCaller makes it on the caller's thread and hands it to the IO thread,
// which alone uses it from then on, without locks.
//
// Sharp edge: pipelines and the queue of due times keep it alive, and speak of it, after it has
// ended. So every asking and every wait has a number of its own: whoever comes with one that Find
// does not know, or that is not `waiting`, is late and does nothing.
struct AsyncCall {
  // Called once. The reply may be moved from; it means something only when the status is ok.
  using Done = std::function<void(Status, Reply&)>;

  // One server that is being asked, on which connection, and since when. A few are asked at a time
  // at most: a hedge beside the first one, and those that are late.
  struct Asking {
    uint32_t number = 0;  // from 1, never twice in a call; 0: nothing is under way here
    CallPlan::Step step{};
    Micros began{0};
    Micros watched{0};  // since when the connection must bring something within an attempt's time
    bool late = false;  // plan and fleet were told that it timed out; its answer is welcome still
    std::shared_ptr<Pipeline> pipeline{};
  };

  AsyncCall(Fleet& fleet, const CallPlan::Limits& limits, Ask what, Micros deadline,
            CallReport* report, Done then)
      : ask(std::move(what)),
        plan(fleet, limits, ask.tag, deadline, report),
        done(std::move(then)) {}

  // The asking of this number while it is under way, else null. 0 finds a free place.
  Asking* Find(uint32_t number) {
    for (Asking& asking : under_way) {
      if (asking.number == number) return &asking;
    }
    return nullptr;
  }
  bool AnyUnderWay() const {
    return std::any_of(under_way.begin(), under_way.end(),
                       [](const Asking& asking) { return asking.number != 0; });
  }
  bool AnyInTime() const {
    return std::any_of(under_way.begin(), under_way.end(),
                       [](const Asking& asking) { return asking.number != 0 && !asking.late; });
  }

  const Ask ask;
  CallPlan plan;
  Done done;  // empty once it was called
  std::array<Asking, 3> under_way{};
  uint32_t last_number = 0;
  uint32_t waiting = 0;        // the number of the wait that is under way; 0: none
  bool finished = false;       // `done` was called; askings may still be under way
  bool hedge_planned = false;  // there is one a call at most
};

using AsyncCallPtr = std::shared_ptr<AsyncCall>;

}  // namespace firn::client
