#include "tests/sim/leases/lease_net.h"

#include <algorithm>

namespace firn {
namespace {

using Kind = LeaseOutcome::Kind;

constexpr int64_t kBeyondMs = 8'000;
// Delay of a request or answer that later ones overtake.
constexpr int64_t kLateMs = 120'000;
// If `route` is at least this long, every request in its period reaches the same copy.
constexpr Milliseconds kStableRoute{60'000};

LeaseCall CallOf(const LeaseRequest& ask) {
  switch (ask.kind) {
    case LeaseRequest::Kind::kGrant:
      return LeaseAsk{ask.token, ask.name, ask.ahead, ask.rack, ask.clock};
    case LeaseRequest::Kind::kRenew:
      return LeaseRenewal{ask.lease, ask.turn, ask.acknowledged, ask.ahead, ask.clock};
    case LeaseRequest::Kind::kRelease:
      break;
  }
  return LeaseEnd{ask.lease, ask.turn, ask.used};
}

Kind KindOf(LeaseVerdict verdict) {
  switch (verdict) {
    case LeaseVerdict::kGranted:
      return Kind::kTerms;
    case LeaseVerdict::kEnded:
      return Kind::kReleased;
    case LeaseVerdict::kUnknown:
      return Kind::kUnknown;
    case LeaseVerdict::kOutdated:
      return Kind::kOutdated;
    case LeaseVerdict::kRevoked:
      return Kind::kGone;
    case LeaseVerdict::kBadRequest:
    case LeaseVerdict::kElsewhere:
    case LeaseVerdict::kLater:
    case LeaseVerdict::kLimit:
    case LeaseVerdict::kRefused:
      break;
  }
  return Kind::kRefused;
}

}  // namespace

Milliseconds LeaseNet::Delay() {
  if (!has_faults_) return Milliseconds(0);
  return shared_.UpTo(shared_.OneIn(20) ? 5'000 : 50);
}

void LeaseNet::Send(const std::shared_ptr<LeaseMailbox>& from, uint64_t number, LeaseRequest ask) {
  const BootMs now = shared_.clock.Boot();
  const Request request{from, number, ask, Destination(ask), now + Delay()};
  if (!has_faults_ || !shared_.OneIn(15)) requests_.push_back(request);
  if (!has_faults_ || !shared_.OneIn(15)) return;
  shared_.Count("repeated requests");
  requests_.push_back(request);
  requests_.back().due = now + shared_.UpTo(shared_.OneIn(2) ? 500 : kLateMs);
}

// Returns the server for a request. A grant request goes to any server, but rarely to the one in
// `avoid`.
std::string LeaseNet::Destination(const LeaseRequest& ask) {
  const std::string any = hosts_[shared_.dice.Below(hosts_.size())]->address();
  if (ask.kind != LeaseRequest::Kind::kGrant) {
    return has_faults_ && shared_.OneIn(40) ? any : ask.server;
  }
  return any == ask.avoid ? hosts_[shared_.dice.Below(hosts_.size())]->address() : any;
}

// Returns the server at this address. Of several copies, it is usually the same one for the time
// `route`, and the first one after all faults.
LeaseHost* LeaseNet::HostAt(const std::string& address) {
  std::vector<LeaseHost*> running;
  for (const auto& host : hosts_) {
    if (host->running() && host->address() == address) running.push_back(host.get());
  }
  if (running.empty()) return nullptr;
  if (running.size() == 1 || !has_faults_) return running.front();
  const auto span = static_cast<uint64_t>(shared_.clock.Boot().ms() / shared_.route.count());
  const bool strays = shared_.route < kStableRoute && shared_.OneIn(5);
  const uint64_t which = strays ? shared_.dice.Next() : span;
  return running[which % running.size()];
}

void LeaseNet::Round() {
  const BootMs now = shared_.clock.Boot();
  std::vector<Request> waiting;
  for (Request& request : std::exchange(requests_, {})) {
    LeaseHost* const host = HostAt(request.server);
    const bool is_paused = host != nullptr && host->paused_until > now;
    if (request.due > now || is_paused) {
      waiting.push_back(std::move(request));
    } else if (host != nullptr) {
      Deliver(request, *host);
    } else if (!has_faults_ || shared_.OneIn(2)) {
      answers_.push_back({request.from, request.number, {.kind = Kind::kNoAnswer}, now});
    }
  }
  requests_.insert(requests_.end(), waiting.begin(), waiting.end());
  std::vector<Answer> later;
  for (Answer& answer : std::exchange(answers_, {})) {
    if (answer.due > now) {
      later.push_back(std::move(answer));
    } else if (const auto to = answer.to.lock()) {
      to->Post(answer.number, std::move(answer.outcome));
    }
  }
  answers_.insert(answers_.end(), later.begin(), later.end());
}

void LeaseNet::Deliver(const Request& request, LeaseHost& host) {
  LeaseRequest ask = request.ask;
  const auto accepted = accepted_.find(ask.lease);
  if (accepted != accepted_.end()) {
    if (shared_.mutant == LeaseMutant::kWithoutTurns) ask.acknowledged = accepted->second;
    if (shared_.mutant == LeaseMutant::kOlderTurnBelieved) ask.turn = accepted->second;
  }
  if (shared_.mutant == LeaseMutant::kOlderTurnBelieved &&
      ask.kind != LeaseRequest::Kind::kRelease) {
    ask = request.ask;
  }
  host.Call(CallOf(ask), [this, request](const LeaseReply& reply) { Reply(request, reply); });
}

void LeaseNet::Reply(const Request& request, const LeaseReply& reply) {
  const BootMs now = shared_.clock.Boot();
  if (reply.verdict == LeaseVerdict::kElsewhere) {
    shared_.Count("redirected");
    Request follows = request;
    follows.server = reply.terms.server;
    follows.due = now + Delay();
    return requests_.push_back(std::move(follows));
  }
  LeaseOutcome outcome = OutcomeOf(request, reply);
  Damage(request, outcome);
  if (has_faults_ && shared_.OneIn(15)) return shared_.Count("lost answers");
  const bool is_late = has_faults_ && shared_.OneIn(30);
  if (is_late) shared_.Count("late answers");
  answers_.push_back({request.from, request.number, std::move(outcome),
                      now + (is_late ? shared_.UpTo(kLateMs) : Delay())});
}

LeaseOutcome LeaseNet::OutcomeOf(const Request& request, const LeaseReply& reply) {
  using Asked = LeaseRequest::Kind;
  LeaseOutcome outcome{.kind = KindOf(reply.verdict)};
  if (!reply.message.empty()) outcome.status = Unavailable(reply.message);
  if (reply.retry_after.count() > 0) outcome.retry_in = reply.retry_after;
  switch (outcome.kind) {
    case Kind::kTerms:
      shared_.Count(request.ask.kind == Asked::kGrant ? "grants" : "renewals");
      outcome.terms = reply.terms;
      break;
    case Kind::kReleased:
      shared_.Count("given back");
      break;
    case Kind::kUnknown:
      shared_.Count("unknown leases");
      break;
    case Kind::kOutdated:
      shared_.Count("outdated requests");
      break;
    case Kind::kGone:
      shared_.Count("revoked");
      break;
    case Kind::kRefused:
      if (reply.verdict == LeaseVerdict::kBadRequest) shared_.Count("refused clocks");
      break;
    case Kind::kNoAnswer:
    case Kind::kNotExtended:
    case Kind::kUnusable:
    case Kind::kElsewhere:
      break;
  }
  return outcome;
}

void LeaseNet::Damage(const Request& request, LeaseOutcome& outcome) {
  const int64_t beyond = kBeyondMs / shared_.layout.tick_ms();
  if (outcome.kind == Kind::kTerms) {
    const std::string& turn = request.ask.turn;
    if (!turn.empty()) accepted_[outcome.terms.lease] = turn;
    if (shared_.mutant == LeaseMutant::kAnswersBeyond)
      outcome.terms.until = outcome.terms.until + beyond;
    if (shared_.mutant == LeaseMutant::kExtendsExpired) {
      promised_[outcome.terms.lease] = outcome.terms;
    }
  }
  const auto promised = promised_.find(request.ask.lease);
  const bool renews = request.ask.kind == LeaseRequest::Kind::kRenew;
  if (outcome.kind != Kind::kUnknown || !renews || promised == promised_.end()) return;
  LeaseGrant& terms = promised->second;
  terms.until =
      std::max(terms.until, shared_.layout.TickAt(shared_.clock.Wall() + request.ask.ahead));
  outcome = {.kind = Kind::kTerms, .terms = terms};
}

}  // namespace firn
