#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/id/id_clock.h"
#include "common/time/entropy.h"
#include "server/front/thrift/thrift_protocol.h"
#include "server/issue/issuer.h"
#include "server/issue/snowflake/snowflake.h"
#include "tests/support/virtual_clock.h"

namespace firn::front {

class CountRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request& request, const Refusal&) override {
    ++refused;
    const std::lock_guard lock(mutex_);
    trace_id_ = request.trace_id;
  }
  // The trace id of the last call.
  std::string trace_id() const {
    const std::lock_guard lock(mutex_);
    return trace_id_;
  }

  std::atomic<int> refused{0};

 private:
  mutable std::mutex mutex_;
  std::string trace_id_;
};

// A server's report about itself, as the test sets it.
class FixedView final : public ServerView {
 public:
  uint64_t version() const override {
    return static_cast<uint64_t>(state_) << 32 | (machine_ ? machine_->value() + 1 : 0);
  }
  ServerReport Report() const override {
    ++reports;
    ServerReport report;
    report.cluster_uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427";
    report.cluster_name = "test";
    report.phase = state_;
    report.machine = machine_;
    report.overloaded = overloaded_;
    report.machines = {{.claim = machine_ ? "holding" : "seeking", .machine = machine_}};
    report.wall = wall();
    report.tags.push_back({.tag = "order", .strategy = "snowflake"});
    report.tags.push_back({.tag = "user",
                           .strategy = "segment",
                           .supply = 300,
                           .supply_seconds = 30,
                           .step = 1'000,
                           .trouble = "the store is away",
                           .outdated = "no buffer = none",
                           .ledger_since = wall(),
                           .ledger_numbers = 7});
    report.refused_tags = refused_tags_;
    report.refused_tags_count = refused_tags_.size();
    for (int i = 0; i < more_tags_; ++i) {
      report.tags.push_back({.tag = "more-" + std::to_string(i), .strategy = "segment"});
    }
    return report;
  }
  ServerPhase phase() const override { return state_; }
  std::string why_not_ready() const override { return why_not_; }
  std::optional<MachineId> machine() const override { return machine_; }
  const Layout& layout() const override { return layout_; }
  RackSplit rack_split() const override { return RackSplit::Default(layout_); }
  WallMs wall() const override { return WallMs(1'735'689'600'000); }
  ShownServers servers() const override { return servers_; }

  mutable std::atomic<int> reports{0};
  int more_tags_ = 0;
  bool overloaded_ = false;
  std::vector<RefusedTagReport> refused_tags_{};
  std::optional<MachineId> machine_ = MachineId(5);  // worker 1 in rack 1
  ServerPhase state_ = ServerPhase::kReady;
  std::string why_not_{};
  ShownServers servers_{};
  Layout layout_ = Layout::Firn();
};

inline std::shared_ptr<const TextTemplate> TextOf(std::string_view text) {
  return std::make_shared<const TextTemplate>(*TextTemplate::Parse(text));
}

// A strategy that issues numbers from 1, or makes callers wait, as the test says.
class ScriptedStrategy final : public Strategy {
 public:
  std::string_view name() const override { return "scripted"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override {
    if (waits) return false;
    *id = next++;
    return true;
  }
  Verdict Issue(IssueCall& call) override {
    ++asked;
    if (waits) {
      return call.Wait(std::chrono::microseconds(again_us), {Reason::kOverloaded, "still waiting"});
    }
    call.Add({next.fetch_add(call.missing()), call.missing(), 1});
    return Verdict::kIssued;
  }
  int64_t NextAtLeast() const override { return next; }
  int64_t count_max() const override { return 10'000'000; }
  void Close() override {}
  void Stop() override {}

  std::atomic<bool> waits{false};
  std::atomic<int> again_us{100};
  std::atomic<int> asked{0};
  std::atomic<int64_t> next{1};
};

// An issuer with the tags `order` (snowflake under a claim, machine 5) and `slow` (scripted).
class Issuing {
 public:
  Issuing() {
    auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(5), clock.Wall());
    claim->ExtendTo(clock.Wall() + Milliseconds(1'000'000));
    if (!snowflake->Adopt(claim).ok()) Die("the test's claim was not adopted");
    if (!issuer.Set({"order", snowflake, {}}).ok()) Die("no tag order");
    if (!issuer.Set({"slow", slow, {}, TextOf("slow-{id}")}).ok()) Die("no tag slow");
  }

  DeskCounters::Sums Sums() const {
    DeskCounters::Sums sums;
    counters.AddTo(sums, ProtocolKind::kThrift);
    return sums;
  }

  VirtualClock clock{WallMs(1'735'689'600'000)};
  IdClock id_clock;
  TickSource ticks{Layout::Firn(), id_clock, clock, false};
  SeededEntropy entropy{1};
  std::shared_ptr<Snowflake> snowflake = std::make_shared<Snowflake>(ticks, entropy);
  std::shared_ptr<ScriptedStrategy> slow = std::make_shared<ScriptedStrategy>();
  CountRejections rejections;
  Issuer issuer{rejections};
  FixedView view;
  Limits limits;
  DeskCounters counters;
  StatusCache status{view, [this] { return Sums(); }, clock};
  Backend backend{issuer, view, limits, "order", status, [] { return Milliseconds(2'345); }};
};

}  // namespace firn::front
