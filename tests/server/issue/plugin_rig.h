#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "server/issue/plugin.h"
#include "server/issue/rejection_handler.h"
#include "server/issue/strategy.h"

namespace firn {

// A scripted plugin, which records its calls.
class ScriptedPlugin final : public Plugin {
 public:
  ScriptedPlugin(std::string name, int order, std::vector<std::string>* log)
      : name_(std::move(name)), order_(order), log_(log) {}

  std::string_view name() const override { return name_; }
  int order() const override { return order_; }
  Effect effect() const override { return does; }

  std::optional<Refusal> Before(const Request& request) override {
    log_->push_back(name_ + " before");
    return before ? before(request) : std::nullopt;
  }
  std::optional<Refusal> After(const Request& request, Runs& runs) override {
    log_->push_back(name_ + " after");
    return after ? after(request, runs) : std::nullopt;
  }
  void OnRefusal(const Request&, const Refusal& refusal) override {
    log_->push_back(name_ + " refused " + std::string(ReasonName(refusal.reason)));
    if (on_refusal) on_refusal();
  }

  std::function<std::optional<Refusal>(const Request&)> before;
  std::function<std::optional<Refusal>(const Request&, Runs&)> after;
  std::function<void()> on_refusal;
  Effect does = Effect::kAny;

 private:
  const std::string name_;
  const int order_;
  std::vector<std::string>* log_;
};

// A strategy that issues 1, 2, 3, ..., and waits, refuses or throws if a test says so.
class CountingStrategy final : public Strategy {
 public:
  std::string_view name() const override { return "counting"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override {
    if (waits > 0) return false;
    *id = next++;
    return true;
  }
  Verdict Issue(IssueCall& call) override {
    if (throws) throw std::runtime_error("no luck");
    if (waits > 0) {
      --waits;
      return call.Wait(std::chrono::microseconds(500), {Reason::kOverloaded, "it took too long"});
    }
    call.Add({std::exchange(next, next + call.missing()), call.missing(), 1});
    return Verdict::kIssued;
  }
  void TakeBack(const IssueCall& call) override { lost += call.request().count - call.missing(); }
  bool HasDropped(const IssueCall&) const override { return dropped; }
  int64_t count_max() const override { return 10'000; }
  void Close() override {}
  void Stop() override {}

  int64_t next = 1;
  int64_t lost = 0;
  int waits = 0;
  bool throws = false, dropped = false;
};

// Records every refusal.
class RecordingRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request& request, const Refusal& refusal) override {
    tags.emplace_back(request.tag);
    reasons.push_back(refusal.reason);
  }

  std::vector<std::string> tags;
  std::vector<Reason> reasons;
};

}  // namespace firn
