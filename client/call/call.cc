#include "client/call/call.h"

#include <algorithm>
#include <coroutine>
#include <string>

#include "client/fleet/refusals.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

// Returns whether the server did not answer or is draining, so that the call needs another server.
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
  if (ask.route != nullptr) failures().round.tried = host_.fleet.Find(ask.route->except);
  return RunCall(this);
}

// --- events -------------------------------------------------------------------------------------

void Call::OnOutcome(size_t attempt, Outcome outcome, bool last) {
  attempts_[attempt].ended = last;
  if (outcome.answered()) {
    answered_ = attempt;
  } else {
    failures().unseen[attempt] = std::move(outcome);
  }
  host_.jobs.MarkReady(*this);
}

void Call::OnNews() {
  if (!pause_for_news_ || now() >= pause_until_) return;
  pause_until_ = Micros(0);
  host_.jobs.MarkReady(*this);
}

std::optional<size_t> Call::Unseen() const {
  if (answered_ || failures_ == nullptr) return answered_;
  for (size_t at = 0; at < attempts_.size(); ++at) {
    if (failures_->unseen[at]) return at;
  }
  return std::nullopt;
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
  const Failures& failed = failures_so_far();
  if (failed.again != nullptr) {
    host_.fleet.Borrow(*failed.again);
    return {.kind = Step::Kind::kSend,
            .server = std::exchange(failures().again, nullptr),
            .fresh = true};
  }
  if (final_) return {};
  if (failed.round.unreached >= kConnectsMax) return {.why = "too many servers are out of reach"};
  if (sent_ >= host_.limits.attempts_max) {
    return RoundOver("as many servers as allowed were asked");
  }
  ServerPtr server = PickAnother();
  if (server == nullptr && !failed.set_aside.empty()) {
    if (now() < failed.set_aside_until) {
      return {.kind = Step::Kind::kWait, .for_news = true, .until = failed.set_aside_until};
    }
    failures().set_aside.clear();
    server = PickAnother();
  }
  if (server == nullptr && failed.round.waited_for_news) {
    failures().round = {};
    server = PickAnother();
  }
  if (server == nullptr) return NoneLeft();
  if (!free_next_ && !host_.fleet.TakeRetry(now())) {
    host_.fleet.GiveBack(*server);
    return {.why = "the retry budget is used up"};
  }
  repeated_ = false;
  if (failures_ != nullptr) failures_->round.waited_for_news = false;
  return {.kind = Step::Kind::kSend, .server = std::move(server)};
}

ServerPtr Call::PickAnother() const {
  const Failures& failed = failures_so_far();
  std::vector<ServerPtr> passed = failed.round.tried;
  passed.insert(passed.end(), failed.set_aside.begin(), failed.set_aside.end());
  const Route* const route = ask.route.get();
  if (route != nullptr && !route->only.empty()) return host_.fleet.PickOne(route->only, passed);
  if (route != nullptr && !route->last.empty()) {
    std::vector<ServerPtr> others = host_.fleet.Find(route->last);
    others.insert(others.end(), passed.begin(), passed.end());
    if (ServerPtr server = host_.fleet.Pick(ask.tag, others, now())) return server;
  }
  return host_.fleet.Pick(ask.tag, passed, now());
}

Call::Step Call::NoneLeft() {
  Round& round = failures().round;
  const size_t tried = round.tried.size();
  const bool one_only = ask.route != nullptr && !ask.route->only.empty();
  const bool may_come =
      tried == 0 || (round.lost == tried && host_.fleet.lists_change() && !one_only);
  // The request for the list of servers is what brings news.
  if (!may_come || ask.method == Ask::Method::kServers) {
    return RoundOver("no other server is left to ask");
  }
  round.waited_for_news = true;
  const bool may_be_back = round.silent > 0 || round.unreached > 0;
  const Micros again = may_be_back ? now() + host_.limits.attempt_limit : deadline_;
  return {.kind = Step::Kind::kWait, .for_news = true, .until = again};
}

Call::Step Call::RoundOver(std::string_view why) {
  Round& round = failures().round;
  const bool all_overloaded =
      round.overloaded > 0 && round.overloaded + round.unreached == round.tried.size();
  if (!all_overloaded) return {.why = why};
  const Micros advice = std::max(round.shortest_advice, kOverloadPause);
  const Micros room = deadline_ - now() - advice;
  if (room <= Micros(0) || rounds_ == kRoundsMax) return {.why = "all servers are overloaded"};
  ++rounds_;
  sent_ = 0;
  round = {};
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
  Failures& failed = failures();
  failed.set_aside_until =
      failed.set_aside.empty() ? again_at : std::min(failed.set_aside_until, again_at);
  failed.set_aside.push_back(std::move(server));
}

bool Call::Heed(size_t at) {
  Attempt& entry = attempts_[at];
  const Attempt attempt = entry.ended ? std::exchange(entry, {}) : entry;
  if (!attempt.ended) entry.late = true;
  if (answered_) {
    if (report_ != nullptr) Tell(attempt, {});
    return true;
  }
  const Outcome outcome = *std::exchange(failures().unseen[at], std::nullopt);
  // The outcome of a late attempt was counted when it timed out.
  if (!attempt.late) HeedFailure(attempt, outcome);
  return false;
}

void Call::HeedFailure(const Attempt& attempt, const Outcome& outcome) {
  Tell(attempt, outcome);
  Failures& failed = failures();
  Round& round = failed.round;
  const bool may_be_done = ask.route != nullptr && !outcome.unsent() && !outcome.spoke();
  if (outcome.stale() && !repeated_) {
    repeated_ = true;
    failed.again = attempt.server;
    final_ = may_be_done;  // after the repetition
    return;
  }
  failed.last = outcome;
  round.tried.push_back(attempt.server);
  round.lost += IsLost(outcome) ? 1U : 0U;
  if (outcome.unsent()) {
    ++round.unreached;
  } else {
    ++sent_;
    round.silent += outcome.spoke() ? 0U : 1U;
  }
  if (outcome.refusal == Reason::kOverloaded) {
    const Micros advice = outcome.retry_after;
    round.shortest_advice =
        round.overloaded == 0 ? advice : std::min(round.shortest_advice, advice);
    ++round.overloaded;
  }
  free_next_ = outcome.unsent() || !host_.limits.counts ||
               (outcome.shared_blame && host_.fleet.MayMove(*attempt.server, attempt.began, now()));
  final_ = final_ || host_.limits.on_failure == FailureMode::kFailfast || may_be_done ||
           (outcome.end == AttemptEnd::kRefused && !MayRetryElsewhere(outcome));
}

// --- the end ------------------------------------------------------------------------------------

void Call::Tell(const Attempt& attempt, const Outcome& outcome) {
  failures().told.push_back({.server = attempt.server->name,
                             .end = outcome.end,
                             .refusal = outcome.refusal,
                             .took = now() - attempt.began,
                             .detail = outcome.detail});
}

void Call::LeaveAttempts(std::optional<AttemptEnd> end) {
  for (const Attempt& one : attempts_) {
    if (!one.in_time()) continue;
    failures().last = end ? Outcome::Of(*end) : one.connection->Silence();
    Tell(one, failures().last);
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
  Failures& failed = failures();
  std::vector<CallAttempt>& told = failed.told;
  const bool counts = host_.limits.counts;
  if (counts) host_.fleet.Count(&ClientCounters::failed);
  const bool refused = final_ && failed.last.end == AttemptEnd::kRefused;
  std::string text = refused ? failed.last.detail : std::string(why);
  for (const ServerPtr& server : failed.set_aside) {
    told.push_back({.server = server->name,
                    .end = AttemptEnd::kUnreachable,
                    .detail = "a connection to it has just failed"});
  }
  if (told.empty() && failed.round.waited_for_news && counts) text = host_.fleet.ReportNoServer();
  for (const CallAttempt& attempt : told) {
    if (refused && &attempt == &told.back()) break;  // its text is at the beginning
    text += (text.empty() ? "" : "; ") + attempt.ToString();
  }
  EndWith(
      {failed.last.refusal ? CodeOf(*failed.last.refusal) : Code::kUnavailable, std::move(text)},
      failed.last);
}

void Call::EndWith(Status status, const Outcome& last) {
  if (report_ != nullptr) {
    *report_ = {.attempts = std::move(failures().told),
                .refusal = last.refusal,
                .retry_after = last.retry_after};
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
