#include "tests/support/registry/faults.h"

namespace firn {
namespace {

Milliseconds UpTo(Entropy& entropy, Milliseconds limit) {
  if (limit.count() <= 0) return {};
  return Milliseconds(
      static_cast<int64_t>(entropy.Below(static_cast<uint64_t>(limit.count()) + 1)));
}

Fate Draw(Entropy& entropy, const FaultRates& rates) {
  const int dice = static_cast<int>(entropy.Below(1000));
  int below = rates.refused;
  if (dice < below) return {Fate::Kind::kRefused, {}, {}, true};
  if (dice < (below += rates.request_lost)) {
    return {Fate::Kind::kRequestLost, {}, rates.time_limit, true};
  }
  if (dice < (below += rates.answer_lost)) {
    return {Fate::Kind::kAnswerLost, UpTo(entropy, rates.delay_max), rates.time_limit, true};
  }
  if (dice < (below += rates.late)) {
    return {Fate::Kind::kLate, rates.time_limit + UpTo(entropy, rates.late_max), rates.time_limit,
            true};
  }
  Fate fate;
  if (dice < below + rates.delayed) {
    fate.apply_after = UpTo(entropy, rates.delay_max);
    fate.answer_after = UpTo(entropy, rates.delay_max);
  }
  return fate;
}

}  // namespace

FaultPlan SeededFaults(Entropy& entropy, FaultRates rates) {
  return [&entropy, rates](Verb verb) {
    Fate fate = Draw(entropy, rates);
    if (rates.notice_lost > 0 && (verb == Verb::kRead || verb == Verb::kList)) {
      fate.notice_lost =
          fate.notice_lost || static_cast<int>(entropy.Below(1000)) < rates.notice_lost;
    }
    return fate;
  };
}

}  // namespace firn
