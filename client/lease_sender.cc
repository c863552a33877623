#include "client/lease_sender.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "client/engine.h"
#include "client/wire/ask.h"
#include "client/wire/lease_values.h"
#include "common/base/cat.h"
#include "common/id/layout.h"
#include "common/time/clock.h"

namespace firn::client {
namespace {

constexpr std::string_view kNoTag = "lease()";  // not the name of a tag
constexpr size_t kRefusingMax = 8;              // servers without leases that one grant asks

using Kind = LeaseOutcome::Kind;

ClientOptions ForLeases(ClientOptions options) {
  options.deadline = LeaseSender::kCallMax;
  options.attempt_limit = LeaseSender::kAttemptMax;
  options.attempts_max = std::max(options.attempts_max, 3);
  options.on_failure = FailureMode::kFailover;
  options.connections = 1;
  options.local_ranges = {};
  options.on_event = {};
  return options;
}

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

LeaseAsk AskOf(const LeaseRequest& request) {
  LeaseAsk ask{.token = request.token,
               .name = request.name,
               .rack = request.rack,
               .lease = request.lease,
               .turn = request.turn,
               .acknowledged = request.acknowledged,
               .clock = request.clock};
  if (request.ahead.count() > 0) ask.ahead = request.ahead;
  if (request.kind == LeaseRequest::Kind::kRelease) ask.used = request.used;
  return ask;
}

// Returns a fault if the terms describe ids of another layout.
std::optional<std::string> FaultOf(const LeaseTerms& terms, const Layout& layout) {
  const bool same = terms.tick_shift == layout.time().shift &&
                    terms.sequence_shift == layout.sequence().shift &&
                    terms.sequence_bits == layout.sequence().width &&
                    terms.tick_ms == layout.tick_ms() && terms.epoch == layout.epoch();
  if (!same) return Cat("a lease of another layout than the cluster's, ", layout.text());
  if (terms.machine < 0) return "a lease of a negative machine id";
  return std::nullopt;
}

// Returns the end of the interval, unless these terms overflow.
std::optional<WallMs> EndOf(const LeaseTerms& terms) {
  int64_t since_epoch = 0, end = 0;
  if (__builtin_mul_overflow(terms.until.count(), int64_t{terms.tick_ms}, &since_epoch) ||
      __builtin_add_overflow(terms.epoch.ms(), since_epoch, &end)) {
    return std::nullopt;
  }
  return WallMs(end);
}

LeaseOutcome Refused(Status status, std::optional<Milliseconds> retry_in = {}) {
  return {.kind = Kind::kRefused, .status = std::move(status), .retry_in = retry_in};
}

LeaseOutcome NoAnswer(std::string why) {
  return {.kind = Kind::kNoAnswer, .status = Unavailable(std::move(why))};
}

// A lessee's request, and what was learnt while it is in progress.
struct Exchange {
  Exchange(uint64_t its_number, LeaseRequest its_request,
           std::shared_ptr<LeaseOutcomes> its_outcomes)
      : number(its_number), request(std::move(its_request)), outcomes(std::move(its_outcomes)) {}

  const uint64_t number;
  const LeaseRequest request;
  const std::shared_ptr<LeaseOutcomes> outcomes;
  const BootMs ends = SystemClock().Boot() + LeaseSender::kCallMax;
  std::string server{};                // that alone is asked; empty: any
  std::vector<std::string> last{};     // servers that are asked last
  std::vector<std::string> without{};  // of them, those that have answered that they grant none
  int hops = 0;                        // servers that were named by another one
  CallReport report{};

  bool is_grant() const { return request.kind == LeaseRequest::Kind::kGrant; }
  bool has_refused(const std::string& name) const {
    return std::find(without.begin(), without.end(), name) != without.end();
  }
  // Returns the server that has answered.
  std::string answering() const {
    const auto answered =
        std::find_if(report.attempts.begin(), report.attempts.end(),
                     [](const CallAttempt& one) { return one.end == AttemptEnd::kAnswered; });
    return answered == report.attempts.end() ? std::string() : answered->server;
  }
};

using ExchangePtr = std::shared_ptr<Exchange>;

}  // namespace

// The connections, and what requests share.
class LeaseSender::Core final : public std::enable_shared_from_this<Core> {
 public:
  explicit Core(ClientOptions options) : engine_(ForLeases(std::move(options))) {}

  const Status& status() const { return engine_.status(); }
  void Send(uint64_t number, const LeaseRequest& request, std::shared_ptr<LeaseOutcomes> outcomes);
  // Ends the requests in progress: none of them owns this afterwards.
  void Stop() { engine_.Stop(); }

 private:
  void Start(const ExchangePtr& exchange);
  void OnEnd(const ExchangePtr& exchange, const Status& status, const Reply& reply);
  void OnRefusal(const ExchangePtr& exchange, const LeaseRefusal& refusal);
  void Follow(const ExchangePtr& exchange, const std::string& server);
  bool HasAnotherServer(Exchange& exchange) const;
  LeaseOutcome FailureOf(const Exchange& exchange, const Status& status);
  void RememberLost(const std::string& token, const CallReport& report);
  void RememberClaim(const std::string& token, std::string server);
  LeaseOutcome TermsOf(const Exchange& exchange, const LeaseTerms& terms) const;
  void End(const Exchange& exchange, LeaseOutcome outcome);
  bool Lists(const std::string& address) const;
  std::string LayoutText() const { return engine_.View().cluster.layout; }

  // Rule 2: a grant without an answer, and the server that may have granted it.
  struct Lost {
    std::string token{};
    std::string server{};
    int times = 0;  // that it failed
  };

  std::mutex mutex_;
  std::set<uint64_t> under_way_;  // under mutex_, as the next
  Lost lost_;

  Engine engine_;
};

LeaseSender::LeaseSender(ClientOptions options)
    : core_(std::make_shared<Core>(std::move(options))) {}

LeaseSender::~LeaseSender() { core_->Stop(); }

const Status& LeaseSender::status() const { return core_->status(); }

void LeaseSender::Send(uint64_t number, const LeaseRequest& request,
                       std::shared_ptr<LeaseOutcomes> outcomes) {
  core_->Send(number, request, std::move(outcomes));
}

void LeaseSender::Core::Send(uint64_t number, const LeaseRequest& request,
                             std::shared_ptr<LeaseOutcomes> outcomes) {
  const auto exchange = std::make_shared<Exchange>(number, request, std::move(outcomes));
  {
    const std::lock_guard lock(mutex_);
    if (!under_way_.insert(number).second) return;  // its outcome will come
    if (exchange->is_grant() && request.token == lost_.token && lost_.times == 1) {
      exchange->server = lost_.server;
    } else if (exchange->is_grant()) {
      exchange->last = {request.avoid, lost_.server};
    }
  }
  if (!exchange->is_grant()) exchange->server = request.server;
  if (exchange->is_grant() || Lists(exchange->server)) return Start(exchange);
  engine_.Answer([self = shared_from_this(), exchange] {
    self->End(*exchange, NoAnswer(Cat("the lease's server, ", exchange->server,
                                      ", is not in the server list")));
  });
}

void LeaseSender::Core::Start(const ExchangePtr& exchange) {
  LeaseAsk lease = AskOf(exchange->request);
  lease.only_server = exchange->server;
  lease.last_servers = exchange->last;
  Ask ask{.method = MethodOf(exchange->request.kind),
          .tag = std::string(kNoTag),
          .lease = std::make_shared<const LeaseAsk>(std::move(lease))};
  const Milliseconds left = std::max(exchange->ends - SystemClock().Boot(), Milliseconds(0));
  engine_.Start(std::move(ask), {.deadline = left, .report = &exchange->report},
                [self = shared_from_this(), exchange](const Status& status, const Reply& reply) {
                  self->OnEnd(exchange, status, reply);
                });
}

void LeaseSender::Core::OnEnd(const ExchangePtr& exchange, const Status& status,
                              const Reply& reply) {
  if (!status.ok()) {
    End(*exchange, FailureOf(*exchange, status));
  } else if (reply.lease->refusal) {
    OnRefusal(exchange, *reply.lease->refusal);
  } else if (reply.lease->terms) {
    End(*exchange, TermsOf(*exchange, *reply.lease->terms));
  } else {
    End(*exchange, {.kind = Kind::kReleased});
  }
}

// A refusal with a reason, or no answer.
LeaseOutcome LeaseSender::Core::FailureOf(const Exchange& exchange, const Status& status) {
  const CallReport& report = exchange.report;
  if (exchange.is_grant()) RememberLost(exchange.request.token, report);
  if (!report.refusal) return {.kind = Kind::kNoAnswer, .status = status};
  LeaseOutcome refused = Refused(status);
  refused.for_good = report.refusal == Reason::kBadRequest || report.refusal == Reason::kRejected;
  if (report.retry_after.count() > 0) refused.retry_in = report.retry_after;
  return refused;
}

void LeaseSender::Core::RememberLost(const std::string& token, const CallReport& report) {
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

// The token's next request goes to this server alone.
void LeaseSender::Core::RememberClaim(const std::string& token, std::string server) {
  const std::lock_guard lock(mutex_);
  lost_ = {.token = token, .server = std::move(server), .times = 1};
}

void LeaseSender::Core::OnRefusal(const ExchangePtr& exchange, const LeaseRefusal& refusal) {
  const Status why = Unavailable(Cat(exchange->answering(), ": ", refusal.message));
  switch (refusal.fault) {
    case LeaseFault::kUnknownLease:
      return End(*exchange, {.kind = Kind::kUnknown, .status = why});
    case LeaseFault::kOutdated:
      return End(*exchange, {.kind = Kind::kOutdated, .status = why});
    case LeaseFault::kRevoked:
      return End(*exchange, {.kind = Kind::kGone, .status = why});
    case LeaseFault::kAnotherServers:
      return Follow(exchange, refusal.server);
    case LeaseFault::kClaiming:
      if (exchange->is_grant()) RememberClaim(exchange->request.token, exchange->answering());
      return End(*exchange, Refused(why, refusal.retry_after));
    case LeaseFault::kNoLeases:
    case LeaseFault::kOther:
      break;
  }
  if (!exchange->is_grant()) return End(*exchange, {.kind = Kind::kNotExtended, .status = why});
  if (!HasAnotherServer(*exchange)) return End(*exchange, Refused(why));
  Start(exchange);
}

void LeaseSender::Core::Follow(const ExchangePtr& exchange, const std::string& server) {
  if (!Lists(server)) {
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
  exchange->server = server;
  Start(exchange);
}

// After a server has answered that it grants no leases: returns whether another one may, and has
// the exchange ask it.
bool LeaseSender::Core::HasAnotherServer(Exchange& exchange) const {
  const std::string server = exchange.answering();
  exchange.server.clear();
  if (!exchange.has_refused(server)) {
    exchange.without.push_back(server);
    exchange.last.push_back(server);
    return exchange.without.size() < kRefusingMax;
  }
  // All others have refused, too, except for some of those that are asked last.
  const auto left = std::find_if(exchange.last.begin(), exchange.last.end(), [&](const auto& one) {
    return !exchange.has_refused(one) && Lists(one);
  });
  if (left == exchange.last.end()) return false;
  exchange.server = *left;
  return true;
}

LeaseOutcome LeaseSender::Core::TermsOf(const Exchange& exchange, const LeaseTerms& terms) const {
  const Result<Layout> layout = Layout::Parse(LayoutText());
  if (!layout.ok()) return Refused(layout.status());
  std::string server = Lists(terms.server) ? terms.server : exchange.answering();
  if (const auto fault = FaultOf(terms, *layout)) {
    return {.kind = Kind::kUnusable,
            .terms = {.lease = terms.lease, .server = std::move(server), .from = terms.from},
            .end = EndOf(terms),
            .status = Invalid(*fault)};
  }
  return {.kind = Kind::kTerms,
          .terms = {.lease = terms.lease,
                    .server = std::move(server),
                    .layout = *layout,
                    .machine = MachineId(static_cast<uint32_t>(terms.machine)),
                    .base_bits = static_cast<uint64_t>(terms.base_bits),
                    .sequence_from = static_cast<uint64_t>(terms.sequence_from),
                    .sequence_count = static_cast<uint64_t>(terms.sequence_count),
                    .from = terms.from,
                    .until = terms.until,
                    .renew_in = terms.renew_in,
                    .ending = terms.ending}};
}

void LeaseSender::Core::End(const Exchange& exchange, LeaseOutcome outcome) {
  {
    const std::lock_guard lock(mutex_);
    under_way_.erase(exchange.number);
  }
  exchange.outcomes->Post(exchange.number, std::move(outcome));
}

bool LeaseSender::Core::Lists(const std::string& address) const {
  const ClusterView view = engine_.View();
  return std::any_of(view.servers.begin(), view.servers.end(),
                     [&](const SeenServer& server) { return server.known.address == address; });
}

}  // namespace firn::client
