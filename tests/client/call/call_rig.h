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

// Sends nothing: a test decides what becomes of each request.
class ScriptedHost final : public CallHost {
 public:
  struct Sent {
    CallPtr call;
    size_t attempt;
    ServerPtr server;
    bool fresh;
    Micros began;
  };

  using CallHost::CallHost;

  std::optional<PipelinePtr> Send(const CallPtr& call, size_t attempt, const ServerPtr& server,
                                  bool fresh) override {
    if (jobs.now() < server->connect_at.load()) return std::nullopt;
    sent.push_back({call, attempt, server, fresh, jobs.now()});
    return PipelinePtr();
  }

  std::deque<Sent> sent;  // without an outcome yet
};

class CallTest : public FleetTest {
 protected:
  // A call that has begun.
  struct Begun {
    CallPtr call;
    std::shared_ptr<CallReport> report = std::make_shared<CallReport>();
    std::shared_ptr<std::optional<Status>> status = std::make_shared<std::optional<Status>>();
    bool ended() const { return status->has_value(); }
  };

  // Before the first call.
  void Limits(const CallLimits& limits) { limits_ = limits; }

  ScriptedHost& host() {
    if (host_ == nullptr || &host_->fleet != &*fleet_) {
      host_ = std::make_unique<ScriptedHost>(jobs_, *fleet_, limits_);
    }
    return *host_;
  }

  Begun Begin(Micros time = Micros(200'000)) {
    Begun begun;
    begun.call =
        std::make_shared<Call>(host(), Ask{.tag = "order"}, Now() + time, begun.report.get(),
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

  // The oldest request ends so, as its connection reports it.
  ServerPtr End(const Outcome& outcome) {
    if (host().sent.empty()) {
      ADD_FAILURE() << "no request is in flight";
      return nullptr;
    }
    const ScriptedHost::Sent sent = std::exchange(host().sent.front(), {});
    host().sent.pop_front();
    Report(sent, outcome);
    Tick();
    return sent.server;
  }
  void Report(const ScriptedHost::Sent& sent, const Outcome& outcome) {
    fleet_->Done(*sent.server, "order", outcome, Now() - sent.began, Now());
    if (sent.call->settled) return;
    sent.call->settled = outcome.answered();
    sent.call->OnOutcome(sent.attempt, outcome, /*last=*/true);
  }
  size_t InFlight() { return host().sent.size(); }

  CallLimits limits_;
  JobQueue jobs_;
  std::unique_ptr<ScriptedHost> host_;
};

}  // namespace firn::client
