#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "server/issue/strategy.h"

namespace firn {

// Refuses every call of a tag for one reason. Thread-safe.
class RefusingStrategy final : public Strategy {
 public:
  explicit RefusingStrategy(Refusal why) : why_(std::move(why)) {}

  std::string_view name() const override { return "refusing"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t*) override { return false; }
  Verdict Issue(IssueCall& call) override { return call.Refuse(why_); }
  std::optional<Refusal> WhyNot() const override { return why_; }
  int64_t one_run_max() const override { return INT64_MAX; }
  int64_t count_max() const override { return INT64_MAX; }
  void Close() override {}
  void Stop() override {}

 private:
  const Refusal why_;
};

}  // namespace firn
