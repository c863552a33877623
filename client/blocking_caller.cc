#include "client/blocking_caller.h"

#include <utility>

#include "client/cluster_check.h"

namespace firn::client {

Status BlockingCaller::Call(const Ask& ask, Micros deadline, CallReport* report, Reply& reply) {
  CallPlan plan(fleet_, limits_, ask.tag, deadline, report);
  for (Micros now = setting_.clock.BootMicros();;) {
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
        const Outcome outcome = Try(ask, step, reply);
        now = setting_.clock.BootMicros();
        if (!plan.Ended(step, outcome, began, now)) break;
        plan.Succeeded();
        return {};
      }
    }
  }
}

Outcome BlockingCaller::Try(const Ask& ask, const CallPlan::Step& step, Reply& reply) {
  Server& server = *step.server;
  if (step.fresh) server.sockets.CloseIdle();  // they are as old as the one that was closed
  std::unique_ptr<BlockingConnection> connection;
  if (!server.sockets.Take(step.until, setting_.clock, connection)) {
    return Outcome::Of(AttemptEnd::kTimeout, "all connections to it were in use");
  }
  Outcome outcome;
  const bool pooled = connection != nullptr;
  if (!pooled) outcome = Open(server, step.until, connection);
  if (outcome.answered()) {
    outcome = connection->Exchange(ask, step.until, reply);
    outcome.was_pooled = pooled;
  }
  if (outcome.answered()) {
    auto fault = FaultOfIds(ask, reply, fleet_.signed_ids());
    if (fault) outcome = Outcome::Of(AttemptEnd::kBroken, *std::move(fault));
  }
  server.sockets.Give(outcome.spoke() ? std::move(connection) : nullptr,
                      setting_.clock.BootMicros());
  return outcome;
}

Outcome BlockingCaller::Open(Server& server, Micros until,
                             std::unique_ptr<BlockingConnection>& connection) {
  std::unique_ptr<BlockingSocket> socket;
  Outcome outcome = BlockingSocket::Connect(fleet_.AddressOf(server), until, setting_, socket);
  fleet_.Count(outcome.answered() ? &ClientCounters::connects : &ClientCounters::connects_failed);
  if (!outcome.answered()) return outcome;
  connection = std::make_unique<BlockingConnection>(std::move(socket));
  Reply reply;
  outcome = connection->Exchange({.method = Ask::Method::kStatus}, until, reply);
  if (outcome.end == AttemptEnd::kRefused || outcome.end == AttemptEnd::kBroken) {
    outcome.end = AttemptEnd::kWrongService;
  } else if (outcome.answered()) {
    auto fault = fleet_.FaultOf(reply.facts);
    if (fault) outcome = Outcome::Of(AttemptEnd::kWrongService, *std::move(fault));
  }
  return outcome;
}

}  // namespace firn::client
