#include "server/issue/segment/fetch_gate.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

// Parked calls are woken by `news`; this interval is for callers that sleep.
constexpr Milliseconds kAskAgain{2};
constexpr int32_t kOverloadedRetryMs = 50;

}  // namespace

void FetchGate::Began(BootMs now) {
  in_flight_ = true;
  began_ = now;
}

void FetchGate::Succeeded() {
  in_flight_ = false;
  trouble_ = {};
  backoff_.Reset();
}

void FetchGate::Failed(Status why, BootMs now) {
  in_flight_ = false;
  trouble_ = std::move(why);
  retry_at_ = now + backoff_.Next();
}

Verdict FetchGate::Answer(IssueCall& call, BootMs now) const {
  Refusal refusal = WhyNone(now);
  if (!near(now)) return call.Refuse(std::move(refusal));
  return call.Wait(kAskAgain, std::move(refusal));
}

std::optional<Refusal> FetchGate::WhyNot(BootMs now) const {
  const bool unanswered = in_flight_ && now - began_ >= kSlow;
  return trouble_.ok() && !unanswered ? std::nullopt : std::optional(WhyNone(now));
}

Refusal FetchGate::WhyNone(BootMs now) const {
  if (trouble_.code() == Code::kExhausted) {
    return {Reason::kExhausted,
            trouble_.message() + "; another server may have some of the last ones in memory", 0,
            true};
  }
  const auto until_retry = std::max<int64_t>(kNear.count(), (retry_at_ - now).count());
  if (trouble_.code() == Code::kConflict) {
    return {Reason::kOverloaded,
            "numbers are requested faster than they arrive: " + trouble_.message(),
            static_cast<int32_t>(until_retry), true};
  }
  if (!trouble_.ok()) {
    return {Reason::kStoreDown,
            "there are no numbers in memory, and none arrive: " + trouble_.message(),
            static_cast<int32_t>(until_retry), true};
  }
  if (in_flight_ && now - began_ >= kSlow) {
    return {Reason::kStoreDown,
            "there are no numbers in memory, and the request for more is not answered",
            static_cast<int32_t>(until_retry), true};
  }
  return {Reason::kOverloaded, "numbers are requested faster than they arrive", kOverloadedRetryMs,
          true};
}

}  // namespace firn
