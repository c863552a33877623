#include "client/call/blocking_caller.h"

#include <utility>
#include <vector>

namespace firn::client {

Status BlockingCaller::Call(const Ask& ask, Micros now, Micros deadline, CallReport* report,
                            Reply& reply) {
  CallPlan plan(fleet_, limits_, ask.tag, deadline, report);
  while (true) {
    const uint64_t news = fleet_.news();
    const CallPlan::Step step = plan.Next(now);
    switch (step.kind) {
      case CallPlan::Step::Kind::kEnd:
        return plan.Failure();
      case CallPlan::Step::Kind::kWait:
        fleet_.WaitForNews(step.for_news ? news : Fleet::kNoNews, step.until);
        now = setting_.clock.BootMicros();
        break;
      case CallPlan::Step::Kind::kTry: {
        const Micros began = now;
        const Outcome outcome = Try(ask, step, reply, now);
        if (!plan.Ended(step, outcome, began, now)) break;
        plan.Succeeded();
        return {};
      }
    }
  }
}

Outcome BlockingCaller::Try(const Ask& ask, const CallPlan::Step& step, Reply& reply, Micros& now) {
  Server& server = *step.server;
  const std::shared_ptr<SocketPool> pool = pools_.Of(server.number);
  if (step.fresh) pool->CloseIdle();  // they are as old as the one that was closed
  std::unique_ptr<BlockingConnection> connection;
  if (!pool->Take(step.until, setting_.clock, connection)) {
    now = setting_.clock.BootMicros();
    return Outcome::Of(AttemptEnd::kNoRoom, {});
  }
  Outcome outcome;
  const bool pooled = connection != nullptr;
  if (!pooled) outcome = Open(server, step.until, connection);
  if (outcome.answered()) {
    outcome = connection->Exchange(ask, step.until, reply);
    outcome.was_pooled = pooled;
  }
  now = setting_.clock.BootMicros();
  if (outcome.answered()) {
    auto fault = connection->ids.FaultOf(ask, reply, now);
    if (fault) outcome = Outcome::Of(AttemptEnd::kBroken, *std::move(fault));
  }
  pool->Give(outcome.spoke() ? std::move(connection) : nullptr, now);
  return outcome;
}

Outcome BlockingCaller::Connect(Server& server, Micros until,
                                std::unique_ptr<BlockingSocket>& socket) {
  const std::vector<Address> addresses = fleet_.AddressesOf(server);
  Outcome outcome = Outcome::Of(AttemptEnd::kUnreachable, "its name is not resolved");
  for (size_t i = 0; i < addresses.size(); ++i) {
    // One that says nothing leaves the others their share of the time.
    const Micros now = setting_.clock.BootMicros();
    const Micros share = (until - now) / static_cast<int64_t>(addresses.size() - i);
    outcome = BlockingSocket::Connect(addresses[i], now + share, setting_, socket);
    if (!outcome.answered()) continue;
    fleet_.Reached(server, addresses[i]);
    break;
  }
  return outcome;
}

Outcome BlockingCaller::Open(Server& server, Micros until,
                             std::unique_ptr<BlockingConnection>& connection) {
  std::unique_ptr<BlockingSocket> socket;
  Outcome outcome = Connect(server, until, socket);
  fleet_.Count(outcome.answered() ? &ClientCounters::connects : &ClientCounters::connects_failed);
  if (!outcome.answered()) return outcome;
  connection = std::make_unique<BlockingConnection>(std::move(socket));
  Reply reply;
  outcome = connection->Exchange({.method = Ask::Method::kStatus}, until, reply);
  if (outcome.end == AttemptEnd::kRefused || outcome.end == AttemptEnd::kBroken) {
    outcome = Outcome::Of(AttemptEnd::kWrongService, std::move(outcome.detail));
  } else if (outcome.answered()) {
    outcome = fleet_.Admit(reply.facts);
    if (!outcome.answered()) return connection.reset(), outcome;
    connection->ids = IdCheck(reply.facts, setting_.clock.BootMicros());
  }
  return outcome;
}

}  // namespace firn::client
