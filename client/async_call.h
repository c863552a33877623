#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "client/ask.h"
#include "client/call_plan.h"
#include "client/micros.h"
#include "common/status.h"

namespace firn::client {

class Pipeline;

// One asynchronous call. Used by the IO thread, once it has been handed over.
struct AsyncCall {
  using Done = std::function<void(Status, Reply&)>;

  // One server that is being asked. A call asks two at a time at most: the second is a hedge.
  struct Asking {
    uint32_t number = 0;  // from 1, never twice in a call; 0: nothing is under way here
    CallPlan::Step step{};
    Micros began{0};
    std::shared_ptr<Pipeline> pipeline{};
  };

  AsyncCall(Fleet& fleet, const CallPlan::Limits& limits, Ask what, Micros deadline,
            CallReport* report, Done then)
      : ask(std::move(what)),
        plan(fleet, limits, ask.tag, deadline, report),
        done(std::move(then)) {}

  Asking* Find(uint32_t number) {
    for (Asking& asking : under_way) {
      if (asking.number == number) return &asking;
    }
    return nullptr;
  }
  Asking* AnyUnderWay() {
    for (Asking& asking : under_way) {
      if (asking.number != 0) return &asking;
    }
    return nullptr;
  }

  const Ask ask;
  CallPlan plan;
  Done done;
  std::array<Asking, 2> under_way{};
  uint32_t last_number = 0;
  uint32_t waiting = 0;  // the number of the wait that is under way; 0: none
  bool finished = false, hedge_planned = false;
};

using AsyncCallPtr = std::shared_ptr<AsyncCall>;

}  // namespace firn::client
