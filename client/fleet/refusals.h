#pragma once

#include <array>
#include <cstddef>

#include "client/wire/outcome.h"
#include "common/id/reason.h"

namespace firn::client {

// The client's reaction to a refusal reason. The table "Refusals" in client/call/FAILOVER.md has
// the same columns.
struct RefusalRule {
  enum class Retry : uint8_t {
    kElsewhere,  // the call fails over
    kIfSaid,     // fails over if the server reports that another one may help
    kNever,      // every server would refuse; the caller gets the refusal
  };
  Reason reason;
  Retry retry;
  // Whether the refusal's duration counts as the server's latency. Otherwise the server counts as
  // slow, however fast it refused, so that balancing does not prefer it.
  bool is_answer;
};

inline constexpr std::array<RefusalRule, kReasons> kRefusalRules{{
    {Reason::kBadRequest, RefusalRule::Retry::kNever, true},
    {Reason::kUnknownTag, RefusalRule::Retry::kNever, true},
    {Reason::kNotReady, RefusalRule::Retry::kElsewhere, false},
    {Reason::kClock, RefusalRule::Retry::kElsewhere, false},
    {Reason::kOverloaded, RefusalRule::Retry::kElsewhere, false},
    // The time field of a snowflake id may be exhausted because of one wrong clock.
    {Reason::kExhausted, RefusalRule::Retry::kIfSaid, true},
    {Reason::kDraining, RefusalRule::Retry::kElsewhere, false},
    {Reason::kRejected, RefusalRule::Retry::kNever, true},
    {Reason::kStoreDown, RefusalRule::Retry::kElsewhere, false},
    {Reason::kInternal, RefusalRule::Retry::kIfSaid, false},
}};

constexpr const RefusalRule& RuleOf(Reason reason) {
  return kRefusalRules[static_cast<size_t>(reason)];
}

// Whether another server may accept the refused call.
inline bool MayRetryElsewhere(const Outcome& outcome) {
  if (!outcome.refusal) return false;
  const RefusalRule::Retry retry = RuleOf(*outcome.refusal).retry;
  return retry == RefusalRule::Retry::kElsewhere ||
         (retry == RefusalRule::Retry::kIfSaid && outcome.another_may_help);
}

// Whether the outcome's duration counts as the server's latency.
inline bool IsAnswer(const Outcome& outcome) {
  return outcome.answered() || (outcome.refusal && RuleOf(*outcome.refusal).is_answer);
}

}  // namespace firn::client
