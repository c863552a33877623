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

// The effects of a fault on one request to a registry and on its answer.
struct Fate {
  enum class Kind {
    kDone,         // applied, perhaps with a delay
    kRefused,      // not applied, and the caller knows it: kUnavailable
    kRequestLost,  // not applied, and the caller does not know it: kUnknown
    kAnswerLost,   // applied, and the caller does not know it: kUnknown
    kLate,         // kUnknown, and applied after that answer (a read: as kRequestLost)
  };

  Kind kind = Kind::kDone;
  Milliseconds apply_after{0};   // from the call until it is applied
  Milliseconds answer_after{0};  // from there, or from the call if it is not applied, to the answer
  bool notice_lost = false;      // a read's watch never notifies
};

enum class Verb { kRead, kList, kSync, kMulti };

// Draws each request's fate.
using FaultPlan = std::function<Fate(Verb)>;

// Frequencies of faults, in thousandths, and their durations.
struct FaultRates {
  int refused = 0;
  int request_lost = 0;
  int answer_lost = 0;
  int late = 0;
  int delayed = 0;  // of the applied requests
  int notice_lost = 0;
  Milliseconds delay_max{0};   // of a delay, evenly drawn
  Milliseconds late_max{0};    // from the answer kUnknown until the write is done
  Milliseconds time_limit{0};  // after which a lost request or answer is reported as unknown
};

// Fates drawn from `entropy`, which must outlive the plan: the same seed, the same fates.
FaultPlan SeededFaults(Entropy& entropy, FaultRates rates);

}  // namespace firn
