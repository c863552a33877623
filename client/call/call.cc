#include "client/call/call.h"

#include <algorithm>
#include <coroutine>
#include <string>

#include "client/fleet/refusals.h"

namespace firn::client {
namespace {

// Whether another server will replace one that ends so.
bool IsLost(const Outcome& outcome) {
  if (outcome.blameless()) return false;
  return !outcome.spoke() || outcome.refusal == Reason::kDraining;
}

}  // namespace

// --- the call -----------------------------------------------------------------------------------

// The awaitable of Next.
class NextEvent {
 public:
  NextEvent(Call* call, Micros until) : call_(call), until_(until) {}
  bool await_ready() const { return call_->HasOutcome(); }
  void await_suspend(std::coroutine_handle<> task) const {
    call_->host_.jobs.Suspend(*call_, task, until_);
  }
  CallEvent await_resume() const { return call_->TakeEvent(); }

 private:
  Call* const call_;
  const Micros until_;
};

// Waits for the call's next event, at most until `until`.
static NextEvent Next(Call* call, Micros until) { return {call, until}; }

Task<> RunCall(Call* call) {
  using Kind = Call::Step::Kind;
  while (true) {
    if (call->host_.stopping) co_return call->EndStopped();
    if (call->now() >= call->deadline_) co_return call->EndAtDeadline();
    // Asks the next server, unless one that was asked may still answer in time.
    while (call->MaySend()) {
      const Call::Step step = call->NextStep();
      if (step.kind == Kind::kSend) {
        call->Send(step);
      } else if (step.kind == Kind::kWait) {
        call->Pause(step);
      } else if (call->final_ || !call->AnyUnderWay()) {
        co_return call->EndFailed(step.why);
      } else {
        break;  // a late answer may come
      }
    }
    const Micros until = call->NextTime();
    const CallEvent event = co_await Next(call, until);
    switch (event.kind) {
      case CallEvent::Kind::kOutcome:
        if (call->Heed(event.attempt)) co_return call->EndWithAnswer();
        break;
      case CallEvent::Kind::kHedge:
        call->Hedge();
        break;
      case CallEvent::Kind::kTime:
        break;
    }
  }
}

Call::Call(CallHost& host, Ask what, Micros deadline, CallReport* report, CallDone done)
    : Request(std::move(what)),
      host_(host),
      deadline_(deadline),
      report_(report),
      done_(std::move(done)) {}

Task<> Call::Run() { return RunCall(this); }

// --- events -------------------------------------------------------------------------------------

void Call::OnOutcome(size_t attempt, Outcome outcome, bool last) {
  attempts_[attempt].outcome = std::move(outcome);
  attempts_[attempt].ended = last;
  host_.jobs.MarkReady(*this);
}

void Call::OnNews() {
  if (!pause_for_news_ || now() >= pause_until_) return;
  pause_until_ = Micros(0);
  host_.jobs.MarkReady(*this);
}

bool Call::HasOutcome() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.outcome.has_value(); });
}

CallEvent Call::TakeEvent() {
  size_t taken = attempts_.size();
  for (size_t at = 0; at < attempts_.size(); ++at) {
    const std::optional<Outcome>& outcome = attempts_[at].outcome;
    if (outcome && (outcome->answered() || taken == attempts_.size())) taken = at;
  }
  if (taken < attempts_.size()) return {CallEvent::Kind::kOutcome, taken};
  if (now() < hedge_at_) return {CallEvent::Kind::kTime};
  hedge_at_ = Micros::max();
  return {CallEvent::Kind::kHedge};
}

Micros Call::NextTime() const {
  const Micros time = std::min(hedge_at_, deadline_);
  return now() < pause_until_ ? std::min(pause_until_, time) : time;
}

bool Call::MaySend() const {
  return !AnyInTime() && now() >= pause_until_ && FreeEntry() < attempts_.size();
}

size_t Call::FreeEntry() const {
  size_t at = 0;
  while (at < attempts_.size() && attempts_[at].server != nullptr) ++at;
  return at;
}

bool Call::AnyInTime() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.server != nullptr && !one.late; });
}

bool Call::AnyUnderWay() const {
  return std::any_of(attempts_.begin(), attempts_.end(),
                     [](const Attempt& one) { return one.server != nullptr; });
}

// --- the next step ------------------------------------------------------------------------------

Call::Step Call::NextStep() {
  if (again_ != nullptr) {
    host_.fleet.Borrow(*again_);
    return {.kind = Step::Kind::kSend, .server = std::exchange(again_, nullptr), .fresh = true};
  }
  if (final_) return {};
  if (unreached_ >= kConnectsMax) return {.why = "too many servers are out of reach"};
  if (sent_ >= host_.limits.attempts_max) {
    return RoundOver("as many servers as allowed were asked");
  }
  ServerPtr server = PickAnother();
  if (server == nullptr && !set_aside_.empty()) {
    if (now() < set_aside_until_) {
      return {.kind = Step::Kind::kWait, .for_news = true, .until = set_aside_until_};
    }
    set_aside_.clear();
    server = PickAnother();
  }
  if (server == nullptr && waited_for_news_) {
    BeginRound();
    server = PickAnother();
  }
  if (server == nullptr) return NoneLeft();
  if (!free_next_ && !host_.fleet.TakeRetry(now())) {
    host_.fleet.GiveBack(*server);
    return {.why = "the retry budget is used up"};
  }
  repeated_ = waited_for_news_ = false;
  return {.kind = Step::Kind::kSend, .server = std::move(server)};
}

ServerPtr Call::PickAnother() {
  if (ask.lease != nullptr) return PickForLease(*ask.lease);
  if (set_aside_.empty()) return host_.fleet.Pick(ask.tag, tried_, now());
  std::vector<ServerPtr> passed = tried_;
  passed.insert(passed.end(), set_aside_.begin(), set_aside_.end());
  return host_.fleet.Pick(ask.tag, passed, now());
}

ServerPtr Call::PickForLease(const LeaseAsk& lease) const {
  std::vector<ServerPtr> passed = tried_;
  passed.insert(passed.end(), set_aside_.begin(), set_aside_.end());
  if (!lease.only_server.empty()) return host_.fleet.PickOne(lease.only_server, passed);
  ServerPtr server = nullptr;
  if (!lease.last_servers.empty()) {
    std::vector<ServerPtr> others = host_.fleet.Find(lease.last_servers);
    others.insert(others.end(), passed.begin(), passed.end());
    server = host_.fleet.Pick(ask.tag, others, now());
  }
  return server != nullptr ? server : host_.fleet.Pick(ask.tag, passed, now());
}

Call::Step Call::NoneLeft() {
  const bool may_come = tried_.empty() || (lost_ == tried_.size() && host_.fleet.lists_change());
  // A request for the list of servers brings the news itself.
  if (!may_come || ask.method == Ask::Method::kServers) {
    return RoundOver("no other server is left to ask");
  }
  waited_for_news_ = true;
  const bool may_be_back = silent_ > 0 || unreached_ > 0;
  const Micros again = may_be_back ? now() + host_.limits.attempt_limit : deadline_;
  return {.kind = Step::Kind::kWait, .for_news = true, .until = again};
}

Call::Step Call::RoundOver(std::string_view why) {
  const bool all_overloaded = overloaded_ > 0 && overloaded_ + unreached_ == tried_.size();
  if (!all_overloaded) return {.why = why};
  const Micros advice = std::max(shortest_advice_, kOverloadPause);
  const Micros room = deadline_ - now() - advice;
  if (room <= Micros(0) || rounds_ == kRoundsMax) return {.why = "all servers are overloaded"};
  ++rounds_;
  sent_ = 0;
  BeginRound();
  const Micros more = host_.fleet.Spread(std::min(advice, room) / 2);
  return {.kind = Step::Kind::kWait, .until = now() + advice + more};
}

void Call::BeginRound() {
  tried_.clear();
  overloaded_ = unreached_ = silent_ = lost_ = 0;
  shortest_advice_ = Micros(0);
  waited_for_news_ = false;
}

void Call::Pause(const Step& step) {
  pause_until_ = std::min(step.until, deadline_);
  pause_for_news_ = step.for_news;
}

// --- attempts -----------------------------------------------------------------------------------

void Call::Send(const Step& step) {
  const size_t at = FreeEntry();
  auto pipeline = host_.Send(shared_from_this(), at, step.server, step.fresh);
  if (pipeline) {
    attempts_[at] = {.server = step.server, .began = now(), .pipeline = *std::move(pipeline)};
    if (host_.limits.hedge_after && !std::exchange(hedge_set_, true)) {
      hedge_at_ = now() + *host_.limits.hedge_after;
    }
    return;
  }
  host_.fleet.GiveBack(*step.server);
  host_.fleet.Count(&ClientCounters::put_off);
  const Micros again_at = step.server->connect_at;
  set_aside_until_ = set_aside_.empty() ? again_at : std::min(set_aside_until_, again_at);
  set_aside_.push_back(step.server);
}

// Asks a second server beside the first.
void Call::Hedge() {
  if (FreeEntry() == attempts_.size() || sent_ + 1 >= host_.limits.attempts_max) return;
  std::vector<ServerPtr> others = tried_;
  for (const Attempt& attempt : attempts_) {
    if (attempt.server != nullptr) others.push_back(attempt.server);
  }
  ServerPtr server = host_.fleet.Pick(ask.tag, others, now());
  if (server == nullptr) return;
  if (!host_.fleet.TakeRetry(now())) return host_.fleet.GiveBack(*server);
  host_.fleet.Count(&ClientCounters::hedges);
  Send({.kind = Step::Kind::kSend, .server = std::move(server)});
}

bool Call::Heed(size_t at) {
  Attempt& entry = attempts_[at];
  const Outcome outcome = *std::exchange(entry.outcome, std::nullopt);
  const Attempt attempt = entry.ended ? std::exchange(entry, {}) : entry;
  if (!attempt.ended) entry.late = true;
  hedge_at_ = Micros::max();
  if (outcome.answered()) {
    if (report_ != nullptr) Tell(attempt, outcome);
    return true;
  }
  // A late one was counted when its time was over.
  if (!attempt.late) HeedFailure(attempt, outcome);
  return false;
}

void Call::HeedFailure(const Attempt& attempt, const Outcome& outcome) {
  Tell(attempt, outcome);
  if (outcome.stale() && !repeated_) {
    repeated_ = true;
    again_ = attempt.server;
    return;
  }
  last_ = outcome;
  unreached_ += outcome.unsent() ? 1U : 0U;
  sent_ += outcome.unsent() ? 0 : 1;
  silent_ += outcome.unsent() || outcome.spoke() ? 0U : 1U;
  free_next_ = outcome.unsent() ||
               (outcome.shared_blame && host_.fleet.MayMove(*attempt.server, attempt.began, now()));
  const bool may_be_done = ask.lease != nullptr && !outcome.unsent() && !outcome.spoke();
  final_ = host_.limits.on_failure == FailureMode::kFailfast || may_be_done ||
           (outcome.end == AttemptEnd::kRefused && !MayRetryElsewhere(outcome));
  if (outcome.refusal == Reason::kOverloaded) {
    const Micros advice = outcome.retry_after;
    shortest_advice_ = overloaded_ == 0 ? advice : std::min(shortest_advice_, advice);
    ++overloaded_;
  }
  lost_ += IsLost(outcome) ? 1U : 0U;
  tried_.push_back(attempt.server);
}

// --- the end ------------------------------------------------------------------------------------

void Call::Tell(const Attempt& attempt, const Outcome& outcome) {
  told_.push_back({.server = attempt.server->name,
                   .end = outcome.end,
                   .refusal = outcome.refusal,
                   .took = now() - attempt.began,
                   .detail = outcome.detail});
}

void Call::LeaveAttempts(std::optional<AttemptEnd> end) {
  for (const Attempt& one : attempts_) {
    if (one.server == nullptr || one.late) continue;
    const bool connected = one.pipeline == nullptr || one.pipeline->connected();
    const AttemptEnd silence = connected ? AttemptEnd::kTimeout : AttemptEnd::kConnectTimeout;
    last_ = Outcome::Of(end.value_or(silence), {});
    Tell(one, last_);
  }
}

void Call::EndWithAnswer() {
  LeaveAttempts(AttemptEnd::kAbandoned);
  if (report_ != nullptr) *report_ = {.attempts = std::move(told_)};
  EndWith({});
}

void Call::EndStopped() {
  LeaveAttempts(AttemptEnd::kAbandoned);
  if (report_ != nullptr) *report_ = {.attempts = std::move(told_)};
  EndWith(Unavailable("the client is being destroyed"));
}

void Call::EndAtDeadline() {
  LeaveAttempts({});
  EndFailed("the deadline has passed");
}

void Call::EndFailed(std::string_view why) {
  host_.fleet.Count(&ClientCounters::failed);
  const bool refused = final_ && last_.end == AttemptEnd::kRefused;
  std::string text = refused ? last_.detail : std::string(why);
  for (const ServerPtr& server : set_aside_) {
    told_.push_back({.server = server->name,
                     .end = AttemptEnd::kUnreachable,
                     .detail = "a connection to it has just failed"});
  }
  if (told_.empty() && waited_for_news_) text = host_.fleet.ReportNoServer();
  for (const CallAttempt& attempt : told_) {
    if (refused && &attempt == &told_.back()) break;  // its sentence stands in front
    text += (text.empty() ? "" : "; ") + attempt.ToString();
  }
  if (report_ != nullptr) {
    *report_ = {
        .attempts = std::move(told_), .refusal = last_.refusal, .retry_after = last_.retry_after};
  }
  EndWith({last_.refusal ? CodeOf(*last_.refusal) : Code::kUnavailable, std::move(text)});
}

void Call::EndWith(Status status) {
  status_ = std::move(status);
  settled = true;
  attempts_ = {};
}

void Call::Refuse(Status status) {
  status_ = std::move(status);
  AfterEnd();
}

void Call::AfterEnd() {
  --host_.calls;
  if (done_) return std::exchange(done_, nullptr)(std::move(status_), reply);
  ended_.store(1, std::memory_order_release);
  ended_.notify_one();
}

}  // namespace firn::client
