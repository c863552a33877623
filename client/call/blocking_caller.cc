#include "client/call/blocking_caller.h"

#include <optional>
#include <utility>
#include <vector>

namespace firn::client {

Result<Reply> BlockingCaller::Call(const Ask& ask, Micros now, Micros deadline,
                                   CallReport* report) {
  CallPlan plan(fleet_, limits_, ask.tag, deadline, report);
  Reply reply;
  while (true) {
    const uint64_t news = fleet_.news();
    const CallPlan::Step step = plan.Next(now);
    const Micros began = now;
    switch (step.kind) {
      case CallPlan::Step::Kind::kEnd:
        return plan.Failure();
      case CallPlan::Step::Kind::kWait:
        fleet_.WaitForNews(step.for_news ? news : Fleet::kNoNews, step.until);
        now = setting_.clock.BootMicros();
        break;
      case CallPlan::Step::Kind::kTry:
        Outcome outcome = Try(ask, step, reply);
        now = setting_.clock.BootMicros();
        if (!plan.Ended(step, std::move(outcome), began, now)) break;
        plan.Succeeded();
        return reply;
    }
  }
}

Outcome BlockingCaller::Try(const Ask& ask, const CallPlan::Step& step, Reply& reply) {
  const std::shared_ptr<SocketPool> pool = pools_.Of(step.server->number);
  if (step.fresh) pool->CloseIdle();  // they are as old as the one that was closed
  std::optional<SocketPool::Room> room = pool->Take(step.until, setting_.clock);
  if (!room) return Outcome::Of(AttemptEnd::kNoRoom, {});
  const bool pooled = *room != nullptr;
  Outcome outcome;
  if (!pooled) {
    auto opened = Open(*step.server, step.until);
    if (opened.ok()) {
      *room = std::move(*opened);
    } else {
      outcome = std::move(opened.outcome());
    }
  }
  if (outcome.answered()) {
    outcome = (*room)->Exchange(ask, step.until, reply);
    outcome.was_pooled = pooled;
  }
  pool->Give(outcome.spoke() ? *std::move(room) : nullptr);
  return outcome;
}

Tried<std::unique_ptr<BlockingSocket>> BlockingCaller::Connect(Server& server, Micros until) {
  const std::vector<Address> addresses = fleet_.AddressesOf(server);
  Tried<std::unique_ptr<BlockingSocket>> socket =
      Outcome::Of(AttemptEnd::kUnreachable, "its name is not resolved");
  for (size_t i = 0; i < addresses.size() && !socket.ok(); ++i) {
    // One that says nothing leaves the others their share of the time.
    const Micros now = setting_.clock.BootMicros();
    const Micros share = (until - now) / static_cast<int64_t>(addresses.size() - i);
    socket = BlockingSocket::Connect(addresses[i], now + share, setting_);
    if (socket.ok()) fleet_.Reached(server, addresses[i]);
  }
  fleet_.Count(socket.ok() ? &ClientCounters::connects : &ClientCounters::connects_failed);
  return socket;
}

Tried<std::unique_ptr<BlockingConnection>> BlockingCaller::Open(Server& server, Micros until) {
  auto socket = Connect(server, until);
  if (!socket.ok()) return std::move(socket.outcome());
  auto connection = std::make_unique<BlockingConnection>(std::move(*socket), setting_.clock);
  Reply reply;
  Outcome asked = connection->Exchange({.method = Ask::Method::kStatus}, until, reply);
  Outcome admitted = fleet_.Admit(std::move(asked), reply.facts);
  if (!admitted.answered()) return admitted;
  connection->Know(reply.facts);
  return connection;
}

}  // namespace firn::client
