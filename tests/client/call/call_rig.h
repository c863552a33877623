#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/call/call.h"
#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {

// A sender that sends nothing: the test decides the outcome of each request.
class ScriptedSender final : public Sender {
 public:
  struct Sent {
    CallPtr call;
    size_t attempt;
    ServerPtr server;
    bool fresh;
    Micros began;
  };

  explicit ScriptedSender(const JobQueue& jobs) : jobs_(jobs) {}

  std::shared_ptr<const Connection> Send(RequestPtr request, size_t attempt,
                                         const ServerPtr& server, bool fresh) override {
    if (jobs_.now() < server->connect_at.load()) return nullptr;
    auto call = std::static_pointer_cast<Call>(std::move(request));
    sent.push_back({std::move(call), attempt, server, fresh, jobs_.now()});
    return std::make_shared<SilentConnection>();
  }

  std::deque<Sent> sent;  // requests without an outcome yet

 private:
  struct SilentConnection final : Connection {
    Outcome Silence() const override { return Outcome::Of(AttemptEnd::kTimeout); }
  };

  const JobQueue& jobs_;
};

class CallTest : public FleetTest {
 protected:
  struct Begun {
    CallPtr call;
    std::shared_ptr<CallReport> report = std::make_shared<CallReport>();
    std::shared_ptr<std::optional<Status>> status = std::make_shared<std::optional<Status>>();
    bool ended() const { return status->has_value(); }
  };

  // Must be called before the first call.
  void Limits(const CallLimits& limits) { limits_ = limits; }

  CallHost& host() {
    if (host_ == nullptr) {
      host_.reset(new CallHost{.jobs = jobs_,
                               .bells = std::make_shared<Bells>(),
                               .fleet = *fleet_,
                               .sender = sender_,
                               .limits = limits_});
    }
    return *host_;
  }
  std::deque<ScriptedSender::Sent>& sent() { return sender_.sent; }

  Begun Begin(Micros time = Micros(200'000)) { return Begin(Ask{.tag = "order"}, time); }
  Begun Begin(Ask ask, Micros time = Micros(200'000)) {
    Begun begun;
    begun.call =
        std::make_shared<Call>(host(), std::move(ask), Now() + time, begun.report.get(),
                               [status = begun.status, kept = begun.report](Status result, Reply&) {
                                 *status = std::move(result);
                               });
    fleet_->CountCall();
    jobs_.SetNow(Now());
    jobs_.Add(begun.call);
    Tick();
    return begun;
  }

  void Tick() {
    jobs_.Tick(Now());
    std::vector<JobPtr> ended;
    jobs_.TakeEnded(ended);
    for (const JobPtr& job : ended) job->AfterEnd();
  }
  void Pass(Milliseconds time) {
    clock_.Advance(time);
    Tick();
  }

  // Ends the oldest request with this outcome.
  ServerPtr End(const Outcome& outcome) {
    if (sent().empty()) {
      ADD_FAILURE() << "no request is in flight";
      return nullptr;
    }
    const ScriptedSender::Sent ended = std::exchange(sent().front(), {});
    sent().pop_front();
    Report(ended, outcome);
    Tick();
    return ended.server;
  }
  void Report(const ScriptedSender::Sent& sent, const Outcome& outcome) {
    fleet_->Done(*sent.server, "order", outcome, Now() - sent.began, Now());
    if (sent.call->settled) return;
    sent.call->settled = outcome.answered();
    sent.call->OnOutcome(sent.attempt, outcome, /*last=*/true);
  }
  size_t InFlight() { return sent().size(); }

  CallLimits limits_;
  JobQueue jobs_;
  ScriptedSender sender_{jobs_};
  std::unique_ptr<CallHost> host_;
};

}  // namespace firn::client
