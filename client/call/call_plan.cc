#include "client/call/call_plan.h"

#include <algorithm>
#include <utility>

namespace firn::client {
namespace {

using Kind = CallPlan::Step::Kind;

bool AnotherMayMend(const Outcome& outcome) {
  if (!outcome.refusal) return false;
  switch (*outcome.refusal) {
    case Reason::kNotReady:
    case Reason::kClock:
    case Reason::kOverloaded:
    case Reason::kDraining:
    case Reason::kStoreDown:
      return true;
    case Reason::kInternal:
    case Reason::kExhausted:  // a snowflake's time field: one wrong clock can be the reason
      return outcome.another_may_help;
    case Reason::kBadRequest:
    case Reason::kUnknownTag:
    case Reason::kRejected:
      break;
  }
  return false;
}

// Whether a server that ends so is one for which there will be another.
bool IsLost(const Outcome& outcome) {
  if (outcome.blameless()) return false;
  return !outcome.spoke() || outcome.refusal == Reason::kDraining;
}

}  // namespace

CallPlan::CallPlan(Fleet& fleet, const Limits& limits, std::string_view tag, Micros deadline,
                   CallReport* report)
    : fleet_(fleet), limits_(limits), tag_(tag), deadline_(deadline), report_(report) {
  fleet_.CountCall();
}

CallPlan::Step CallPlan::TryOf(ServerPtr server, bool fresh, Micros now) const {
  return {.kind = Kind::kTry,
          .server = std::move(server),
          .fresh = fresh,
          .until = std::min(now + limits_.attempt_limit, deadline_)};
}

CallPlan::Step CallPlan::EndOf(std::string_view why) {
  why_ = why;
  return {};
}

bool CallPlan::MustStop(Micros now) {
  if (final_) {
    why_ = "";
  } else if (now >= deadline_) {
    why_ = "the deadline has passed";
  } else if (unreached_ >= kConnectsMax) {
    why_ = "too many servers are out of reach";
  } else {
    return false;
  }
  return true;
}

CallPlan::Step CallPlan::Next(Micros now) {
  if (again_ != nullptr && now < deadline_) {
    fleet_.Borrow(*again_);
    return TryOf(std::exchange(again_, nullptr), true, now);
  }
  if (MustStop(now)) return {};
  if (sent_ >= limits_.attempts_max) {
    return RoundOver("as many servers as allowed were asked", now);
  }
  ServerPtr server = PickAnother(now);
  if (server == nullptr && !put_off_.empty()) {
    if (now < again_at_) {
      return {.kind = Kind::kWait, .for_news = true, .until = std::min(again_at_, deadline_)};
    }
    put_off_.clear();
    server = PickAnother(now);
  }
  if (server == nullptr && waited_for_news_) {
    BeginRound();
    server = fleet_.Pick(tag_, tried_, now);
  }
  if (server == nullptr) return NobodyLeft(now);
  if (!free_next_ && !fleet_.TakeRetry(now)) {
    fleet_.GiveBack(*server);
    return EndOf("the retry budget is used up");
  }
  repeated_ = waited_for_news_ = false;
  return TryOf(std::move(server), false, now);
}

ServerPtr CallPlan::PickAnother(Micros now) {
  if (put_off_.empty()) return fleet_.Pick(tag_, tried_, now);
  std::vector<ServerPtr> passed = tried_;
  passed.insert(passed.end(), put_off_.begin(), put_off_.end());
  return fleet_.Pick(tag_, passed, now);
}

void CallPlan::PutOff(const Step& step, Micros again_at) {
  fleet_.GiveBack(*step.server);
  fleet_.Count(&ClientCounters::put_off);
  again_at_ = put_off_.empty() ? again_at : std::min(again_at_, again_at);
  put_off_.push_back(step.server);
}

CallPlan::Step CallPlan::Hedge(const ServerPtr& busy, Micros now) {
  if (MustStop(now) || sent_ + 1 >= limits_.attempts_max) return {};
  std::vector<ServerPtr> others = tried_;
  others.push_back(busy);
  ServerPtr server = fleet_.Pick(tag_, others, now);
  if (server == nullptr) return {};
  if (!fleet_.TakeRetry(now)) {
    fleet_.GiveBack(*server);
    return {};
  }
  fleet_.Count(&ClientCounters::hedges);
  return TryOf(std::move(server), false, now);
}

CallPlan::Step CallPlan::NobodyLeft(Micros now) {
  const bool may_come = tried_.empty() || (lost_ == tried_.size() && fleet_.lists_change());
  if (may_come && limits_.awaits_news) {
    waited_for_news_ = true;
    const bool may_speak = silent_ > 0 || unreached_ > 0;
    const Micros again = may_speak ? now + limits_.attempt_limit : deadline_;
    return {.kind = Kind::kWait, .for_news = true, .until = std::min(again, deadline_)};
  }
  return RoundOver("no other server is left to ask", now);
}

CallPlan::Step CallPlan::RoundOver(std::string_view why, Micros now) {
  const bool all_overloaded = overloaded_ > 0 && overloaded_ + unreached_ == tried_.size();
  if (!all_overloaded) return EndOf(why);
  const Micros advice = std::max(shortest_advice_, kOverloadPause);
  const Micros room = deadline_ - now - advice;
  if (room <= Micros(0) || rounds_ == kRoundsMax) return EndOf("all servers are overloaded");
  ++rounds_;
  sent_ = 0;
  BeginRound();
  return {.kind = Kind::kWait, .until = now + advice + fleet_.Spread(std::min(advice, room) / 2)};
}

void CallPlan::BeginRound() {
  tried_.clear();
  overloaded_ = unreached_ = silent_ = lost_ = 0;
  shortest_advice_ = Micros(0);
  waited_for_news_ = false;
}

bool CallPlan::Ended(const Step& step, Outcome outcome, Micros began, Micros now) {
  const bool moved = outcome.shared_blame && !outcome.unsent();
  // A call that left it hardly any time says nothing about the server.
  const bool late =
      outcome.end == AttemptEnd::kTimeout || outcome.end == AttemptEnd::kConnectTimeout;
  if (late && (step.until - began) * 2 < limits_.attempt_limit) outcome.shared_blame = true;
  fleet_.Done(*step.server, tag_, outcome, now - began, now);
  if (outcome.answered() && report_ == nullptr) return true;
  attempts_.push_back({.server = step.server->name,
                       .end = outcome.end,
                       .refusal = outcome.refusal,
                       .took = now - began,
                       .detail = outcome.detail});
  if (outcome.answered()) return true;
  if (outcome.stale() && !repeated_) {
    repeated_ = true;
    again_ = step.server;
    return false;
  }
  last_ = outcome;
  if (outcome.unsent()) {
    ++unreached_;
  } else {
    ++sent_;
  }
  silent_ += outcome.unsent() || outcome.spoke() ? 0U : 1U;
  free_next_ = outcome.unsent() || (moved && fleet_.MayMove(*step.server, began, now));
  final_ = limits_.on_failure == FailureMode::kFailfast ||
           (outcome.end == AttemptEnd::kRefused && !AnotherMayMend(outcome));
  if (outcome.refusal == Reason::kOverloaded) {
    const Micros advice = outcome.retry_after;
    shortest_advice_ = overloaded_ == 0 ? advice : std::min(shortest_advice_, advice);
    ++overloaded_;
  }
  lost_ += IsLost(outcome) ? 1U : 0U;
  tried_.push_back(step.server);
  return false;
}

void CallPlan::Left(const Step& step, AttemptEnd end, Micros began, Micros now) {
  attempts_.push_back({.server = step.server->name, .end = end, .took = now - began});
  last_ = Outcome::Of(end, {});
}

void CallPlan::FillReport() {
  if (report_ != nullptr) *report_ = {.attempts = std::move(attempts_)};
}

Status CallPlan::Failure() {
  fleet_.Count(&ClientCounters::failed);
  const bool settled = final_ && last_.end == AttemptEnd::kRefused;
  std::string text = settled ? last_.detail : std::string(why_);
  for (const ServerPtr& server : put_off_) {
    attempts_.push_back({.server = server->name,
                         .end = AttemptEnd::kUnreachable,
                         .detail = "a connection to it has just failed"});
  }
  if (attempts_.empty() && waited_for_news_) text = fleet_.TellNobodyToAsk();
  for (const CallAttempt& attempt : attempts_) {
    if (settled && &attempt == &attempts_.back()) break;  // its sentence stands in front
    text += (text.empty() ? "" : "; ") + attempt.ToString();
  }
  if (report_ != nullptr) {
    *report_ = {.attempts = std::move(attempts_),
                .refusal = last_.refusal,
                .retry_after = last_.retry_after};
  }
  return {last_.refusal ? CodeOf(*last_.refusal) : Code::kUnavailable, std::move(text)};
}

}  // namespace firn::client
