#include "client/lease_sender.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "client/wire/ask.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

constexpr std::string_view kNoTag = "lease()";  // not the name of a tag

using Kind = LeaseOutcome::Kind;

Ask::Method MethodOf(LeaseRequest::Kind kind) {
  switch (kind) {
    case LeaseRequest::Kind::kGrant:
      return Ask::Method::kLease;
    case LeaseRequest::Kind::kRenew:
      return Ask::Method::kRenewLease;
    case LeaseRequest::Kind::kRelease:
      break;
  }
  return Ask::Method::kReleaseLease;
}

LeaseOutcome NoAnswer(std::string why) {
  return {.kind = Kind::kNoAnswer, .status = Unavailable(std::move(why))};
}

}  // namespace

// A lessee's request in progress, and its state.
struct LeaseSender::Exchange {
  const uint64_t number;
  const std::shared_ptr<const LeaseRequest> request;
  const std::shared_ptr<LeaseOutcomes> outcomes;
  const Micros deadline;
  Route route{};                          // of the next attempt
  int hops = 0;                           // redirections to another server
  std::optional<LeaseOutcome> refusal{};  // of the server that has refused last to grant a lease
  CallReport report{};

  bool is_grant() const { return request->kind == LeaseRequest::Kind::kGrant; }
  // Returns the server that has answered.
  std::string answering() const {
    const auto answered =
        std::find_if(report.attempts.begin(), report.attempts.end(),
                     [](const CallAttempt& one) { return one.end == AttemptEnd::kAnswered; });
    return answered == report.attempts.end() ? std::string() : answered->server;
  }
};

LeaseSender::LeaseSender(std::shared_ptr<Engine> engine)
    : engine_(std::move(engine)), status_(engine_->status()) {
  if (!status_.ok()) return;
  status_ = engine_->Add(
      caller_,
      {.limits = {.attempts_max = kRefusingMax, .attempt_limit = kAttemptMax, .counts = false},
       .connections = 1});
}

LeaseSender::~LeaseSender() { engine_->Remove(caller_); }

void LeaseSender::Send(uint64_t number, const LeaseRequest& request,
                       std::shared_ptr<LeaseOutcomes> outcomes) {
  const ExchangePtr exchange(new Exchange{.number = number,
                                          .request = std::make_shared<const LeaseRequest>(request),
                                          .outcomes = std::move(outcomes),
                                          .deadline = engine_->DeadlineOf({.deadline = kCallMax})});
  {
    const std::lock_guard lock(mutex_);
    if (!under_way_.insert(number).second) return;  // it is in progress already
    if (!exchange->is_grant()) {
      exchange->route.only = request.server;
    } else if (request.token == lost_.token && lost_.times == 1) {
      exchange->route.only = lost_.server;
    } else {
      exchange->route.last = {request.avoid, lost_.server};
    }
  }
  if (exchange->is_grant() || engine_->Lists(request.server)) return Start(exchange);
  caller_->Post([this, exchange] {
    End(*exchange,
        NoAnswer(Cat("the lease's server, ", exchange->route.only, ", is not in the server list")));
  });
}

void LeaseSender::Start(const ExchangePtr& exchange) {
  Ask ask{.method = MethodOf(exchange->request->kind),
          .tag = std::string(kNoTag),
          .lease = exchange->request,
          .route = std::make_shared<const Route>(exchange->route)};
  caller_->Start(std::move(ask), exchange->deadline, &exchange->report,
                 [this, exchange](const Status& status, const Reply& reply) {
                   OnEnd(exchange, status, reply);
                 });
}

void LeaseSender::OnEnd(const ExchangePtr& exchange, const Status& status, const Reply& reply) {
  if (!status.ok()) return End(*exchange, FailureOf(*exchange, status));
  LeaseOutcome outcome = *reply.lease;
  std::string server = exchange->answering();
  if (outcome.kind == Kind::kElsewhere) return Follow(exchange, outcome.terms.server);
  if (outcome.kind == Kind::kTerms || outcome.kind == Kind::kUnusable) {
    if (!engine_->Lists(outcome.terms.server)) outcome.terms.server = std::move(server);
    return End(*exchange, std::move(outcome));
  }
  outcome.status = std::move(outcome.status).WithContext(server);
  if (exchange->is_grant() && outcome.claiming) {
    // The next request of this token goes to this server only.
    const std::lock_guard lock(mutex_);
    lost_ = {.token = exchange->request->token, .server = std::move(server), .times = 1};
  } else if (exchange->is_grant() && outcome.kind == Kind::kNotExtended) {
    outcome.kind = Kind::kRefused;
    exchange->route.only.clear();
    exchange->route.except.push_back(std::move(server));
    if (exchange->route.except.size() < kRefusingMax) {
      exchange->refusal = std::move(outcome);
      return Start(exchange);
    }
  }
  End(*exchange, std::move(outcome));
}

// Returns the outcome of a failed call: a refusal with its reason, or kNoAnswer.
LeaseOutcome LeaseSender::FailureOf(const Exchange& exchange, const Status& status) {
  const CallReport& report = exchange.report;
  if (exchange.refusal && report.attempts.empty()) return *exchange.refusal;
  if (exchange.is_grant()) RememberLost(exchange.request->token, report);
  if (!report.refusal) return {.kind = Kind::kNoAnswer, .status = status};
  LeaseOutcome refused{.kind = Kind::kRefused, .status = status};
  refused.for_good = report.refusal == Reason::kBadRequest || report.refusal == Reason::kRejected;
  if (report.retry_after.count() > 0) refused.retry_in = report.retry_after;
  return refused;
}

void LeaseSender::RememberLost(const std::string& token, const CallReport& report) {
  const auto lost =
      std::find_if(report.attempts.begin(), report.attempts.end(), [](const auto& one) {
        return one.end == AttemptEnd::kTimeout || one.end == AttemptEnd::kClosed ||
               one.end == AttemptEnd::kBroken;
      });
  const std::lock_guard lock(mutex_);
  if (lost_.token == token) {
    ++lost_.times;
  } else if (lost != report.attempts.end()) {
    lost_ = {.token = token, .server = lost->server, .times = 1};
  }
}

void LeaseSender::Follow(const ExchangePtr& exchange, const std::string& server) {
  if (!engine_->Lists(server)) {
    return End(*exchange, NoAnswer(Cat("the lease belongs to server '", server,
                                       "', which the server list does not name")));
  }
  if (exchange->hops == kHopsMax) {
    return End(*exchange, NoAnswer(Cat(kHopsMax + 1,
                                       " servers answered that the lease belongs to "
                                       "another one, the last to ",
                                       server)));
  }
  ++exchange->hops;
  exchange->route.only = server;
  Start(exchange);
}

void LeaseSender::End(const Exchange& exchange, LeaseOutcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(exchange.number);
  }
  exchange.outcomes->Post(exchange.number, std::move(outcome));
}

}  // namespace firn::client
