#include "client/call/call.h"

#include <algorithm>
#include <coroutine>
#include <string>

#include "client/fleet/refusals.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

// Whether only another server can replace one with this outcome.
bool IsLost(const Outcome& outcome) {
  if (outcome.blameless()) return false;
  return !outcome.spoke() || outcome.refusal == Reason::kDraining;
}

}  // namespace

// --- the call -----------------------------------------------------------------------------------

// The awaitable that Next returns.
class NextOutcome {
 public:
  NextOutcome(Call* call, Micros until) : call_(call), until_(until) {}
  bool await_ready() const { return call_->Unseen().has_value(); }
  void await_suspend(std::coroutine_handle<> task) const {
    call_->host_.jobs.Suspend(*call_, task, until_);
  }
  std::optional<size_t> await_resume() const { return call_->Unseen(); }

 private:
  Call* const call_;
  const Micros until_;
};

// Waits for the outcome of one of the call's attempts and returns the attempt's number. Returns
// none at `until`, when servers have changed, or when the client is destroyed.
static NextOutcome Next(Call* call, Micros until) { return {call, until}; }

Task<> RunCall(Call* call) {
  using Kind = Call::Step::Kind;
  while (true) {
    if (call->host_.stopping) co_return call->EndStopped();
    if (call->now() >= call->deadline_) co_return call->EndAtDeadline();
    // Sends to the next server, unless an earlier attempt may still be answered in time.
    while (call->MaySend()) {
      const Call::Step step = call->NextStep();
      if (step.kind == Kind::kSend) {
        call->Send(step.server, step.fresh);
      } else if (step.kind == Kind::kWait) {
        call->Pause(step);
      } else if (call->final_ || !call->AnyUnderWay()) {
        co_return call->EndFailed(step.why);
      } else {
        break;  // a late answer may arrive
      }
    }
    const Micros until = call->NextTime();
    const std::optional<size_t> attempt = co_await Next(call, until);
    if (attempt && call->Heed(*attempt)) co_return call->EndWithAnswer();
  }
}

Call::Call(CallHost& host, Ask what, Micros deadline, CallReport* report, CallDone done)
    : Request(std::move(what)),
      host_(host),
      deadline_(deadline),
      report_(report),
      done_(std::move(done)),
      bell_(done_ ? nullptr : Bells::Join(host.bells)) {}

void Call::AwaitEnd() const {
  while (true) {
    const uint32_t rings = bell_->rings();
    if (ended_.load(std::memory_order_acquire)) return;
    bell_->Await(rings);
  }
}

Task<> Call::Run() {
  began_ = now();
  return RunCall(this);
}

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

std::optional<size_t> Call::Unseen() const {
  std::optional<size_t> unseen;
  for (size_t at = 0; at < attempts_.size(); ++at) {
    const std::optional<Outcome>& outcome = attempts_[at].outcome;
    if (outcome && (outcome->answered() || !unseen)) unseen = at;
  }
  return unseen;
}

Micros Call::NextTime() const {
  return now() < pause_until_ ? std::min(pause_until_, deadline_) : deadline_;
}

bool Call::MaySend() const {
  return !AnyInTime() && now() >= pause_until_ && FreeEntry() < attempts_.size();
}

size_t Call::FreeEntry() const {
  size_t at = 0;
  while (at < attempts_.size() && attempts_[at].under_way()) ++at;
  return at;
}

// --- the next step ------------------------------------------------------------------------------

Call::Step Call::NextStep() {
  if (again_ != nullptr) {
    host_.fleet.Borrow(*again_);
    return {.kind = Step::Kind::kSend, .server = std::exchange(again_, nullptr), .fresh = true};
  }
  if (final_) return {};
  if (round_.unreached >= kConnectsMax) return {.why = "too many servers are out of reach"};
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
  if (server == nullptr && round_.waited_for_news) {
    round_ = {};
    server = PickAnother();
  }
  if (server == nullptr) return NoneLeft();
  if (!free_next_ && !host_.fleet.TakeRetry(now())) {
    host_.fleet.GiveBack(*server);
    return {.why = "the retry budget is used up"};
  }
  repeated_ = round_.waited_for_news = false;
  return {.kind = Step::Kind::kSend, .server = std::move(server)};
}

ServerPtr Call::PickAnother() const {
  std::vector<ServerPtr> passed = round_.tried;
  passed.insert(passed.end(), set_aside_.begin(), set_aside_.end());
  const LeaseAsk* const lease = ask.lease.get();
  if (lease != nullptr && !lease->only_server.empty()) {
    return host_.fleet.PickOne(lease->only_server, passed);
  }
  if (lease != nullptr && !lease->last_servers.empty()) {
    std::vector<ServerPtr> others = host_.fleet.Find(lease->last_servers);
    others.insert(others.end(), passed.begin(), passed.end());
    if (ServerPtr server = host_.fleet.Pick(ask.tag, others, now())) return server;
  }
  return host_.fleet.Pick(ask.tag, passed, now());
}

Call::Step Call::NoneLeft() {
  const size_t tried = round_.tried.size();
  const bool one_only = ask.lease != nullptr && !ask.lease->only_server.empty();
  const bool may_come =
      tried == 0 || (round_.lost == tried && host_.fleet.lists_change() && !one_only);
  // The request for the list of servers is what brings news.
  if (!may_come || ask.method == Ask::Method::kServers) {
    return RoundOver("no other server is left to ask");
  }
  round_.waited_for_news = true;
  const bool may_be_back = round_.silent > 0 || round_.unreached > 0;
  const Micros again = may_be_back ? now() + host_.limits.attempt_limit : deadline_;
  return {.kind = Step::Kind::kWait, .for_news = true, .until = again};
}

Call::Step Call::RoundOver(std::string_view why) {
  const bool all_overloaded =
      round_.overloaded > 0 && round_.overloaded + round_.unreached == round_.tried.size();
  if (!all_overloaded) return {.why = why};
  const Micros advice = std::max(round_.shortest_advice, kOverloadPause);
  const Micros room = deadline_ - now() - advice;
  if (room <= Micros(0) || rounds_ == kRoundsMax) return {.why = "all servers are overloaded"};
  ++rounds_;
  sent_ = 0;
  round_ = {};
  const Micros more = host_.fleet.Spread(std::min(advice, room) / 2);
  return {.kind = Step::Kind::kWait, .until = now() + advice + more};
}

void Call::Pause(const Step& step) {
  pause_until_ = std::min(step.until, deadline_);
  pause_for_news_ = step.for_news;
}

// --- attempts -----------------------------------------------------------------------------------

void Call::Send(ServerPtr server, bool fresh) {
  const size_t at = FreeEntry();
  auto connection = host_.sender.Send(shared_from_this(), at, server, fresh);
  if (connection != nullptr) {
    attempts_[at] = {
        .server = std::move(server), .began = now(), .connection = std::move(connection)};
    return;
  }
  free_next_ = true;
  host_.fleet.GiveBack(*server);
  host_.fleet.Count(&ClientCounters::connects_deferred);
  const Micros again_at = server->connect_at;
  set_aside_until_ = set_aside_.empty() ? again_at : std::min(set_aside_until_, again_at);
  set_aside_.push_back(std::move(server));
}

bool Call::Heed(size_t at) {
  Attempt& entry = attempts_[at];
  const Outcome outcome = *std::exchange(entry.outcome, std::nullopt);
  const Attempt attempt = entry.ended ? std::exchange(entry, {}) : entry;
  if (!attempt.ended) entry.late = true;
  if (outcome.answered()) {
    if (report_ != nullptr) Tell(attempt, outcome);
    return true;
  }
  // The outcome of a late attempt was counted when it timed out.
  if (!attempt.late) HeedFailure(attempt, outcome);
  return false;
}

void Call::HeedFailure(const Attempt& attempt, const Outcome& outcome) {
  Tell(attempt, outcome);
  const bool may_be_done = ask.lease != nullptr && !outcome.unsent() && !outcome.spoke();
  if (outcome.stale() && !repeated_) {
    repeated_ = true;
    again_ = attempt.server;
    final_ = may_be_done;  // after the repetition
    return;
  }
  last_ = outcome;
  round_.tried.push_back(attempt.server);
  round_.lost += IsLost(outcome) ? 1U : 0U;
  if (outcome.unsent()) {
    ++round_.unreached;
  } else {
    ++sent_;
    round_.silent += outcome.spoke() ? 0U : 1U;
  }
  if (outcome.refusal == Reason::kOverloaded) {
    const Micros advice = outcome.retry_after;
    round_.shortest_advice =
        round_.overloaded == 0 ? advice : std::min(round_.shortest_advice, advice);
    ++round_.overloaded;
  }
  free_next_ = outcome.unsent() ||
               (outcome.shared_blame && host_.fleet.MayMove(*attempt.server, attempt.began, now()));
  final_ = final_ || host_.limits.on_failure == FailureMode::kFailfast || may_be_done ||
           (outcome.end == AttemptEnd::kRefused && !MayRetryElsewhere(outcome));
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
    if (!one.in_time()) continue;
    last_ = end ? Outcome::Of(*end) : one.connection->Silence();
    Tell(one, last_);
  }
}

void Call::EndWithAnswer() {
  LeaveAttempts(AttemptEnd::kAbandoned);
  EndWith({});
}

void Call::EndStopped() {
  LeaveAttempts(AttemptEnd::kAbandoned);
  EndWith(Unavailable("the client is being destroyed"));
}

void Call::EndAtDeadline() {
  LeaveAttempts({});
  const Micros blocked = host_.jobs.BlockedSince(began_);
  if (blocked == Micros(0)) return EndFailed("the deadline has passed");
  EndFailed(Cat("the deadline has passed; the client's own thread was blocked for ",
                blocked.count() / 1000, " ms, by a callback or a busy machine"));
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
  if (told_.empty() && round_.waited_for_news) text = host_.fleet.ReportNoServer();
  for (const CallAttempt& attempt : told_) {
    if (refused && &attempt == &told_.back()) break;  // its text is at the beginning
    text += (text.empty() ? "" : "; ") + attempt.ToString();
  }
  EndWith({last_.refusal ? CodeOf(*last_.refusal) : Code::kUnavailable, std::move(text)}, last_);
}

void Call::EndWith(Status status, const Outcome& last) {
  if (report_ != nullptr) {
    *report_ = {
        .attempts = std::move(told_), .refusal = last.refusal, .retry_after = last.retry_after};
  }
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
  ended_.store(true, std::memory_order_release);
  host_.bells->RingLater(*bell_);
}

}  // namespace firn::client
