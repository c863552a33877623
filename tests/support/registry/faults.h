#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/coordinator.h"

namespace firn {

// What becomes of one request on its way to a registry and back.
struct Fate {
  enum class Kind {
    kDone,         // it goes through, perhaps with delay
    kRefused,      // nothing is done, and the asker knows it: kUnavailable
    kRequestLost,  // nothing is done, and the asker does not know it: kUnknown
    kAnswerLost,   // it is done, and the asker does not know it: kUnknown
    kLate,         // kUnknown, and it is done after that answer (a read: as kRequestLost)
  };

  Kind kind = Kind::kDone;
  Milliseconds apply_after{0};   // from the call until it is done
  Milliseconds answer_after{0};  // from then, or from the call where nothing is done, until told
  bool notice_lost = false;      // of a read's watch: it never tells
};

enum class Verb { kRead, kList, kSync, kMulti };

// Draws each request's fate.
using FaultPlan = std::function<Fate(Verb)>;

// How often what goes wrong, in parts of a thousand, and for how long.
struct FaultRates {
  int refused = 0;
  int request_lost = 0;
  int answer_lost = 0;
  int late = 0;
  int delayed = 0;  // of those that go through
  int notice_lost = 0;
  Milliseconds delay_max{0};   // of a delay, evenly drawn
  Milliseconds late_max{0};    // from the answer kUnknown until the write is done
  Milliseconds time_limit{0};  // after which whoever has lost a request or an answer is told
};

// Fates drawn from `entropy`, which must outlive the plan: the same seed, the same fates.
FaultPlan SeededFaults(Entropy& entropy, FaultRates rates);

}  // namespace firn
