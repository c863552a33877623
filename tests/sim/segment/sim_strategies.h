#pragma once

#include <optional>
#include <string_view>
#include <utility>

#include "server/issue/plugin.h"
#include "server/issue/strategy.h"
#include "tests/sim/segment/segment_host.h"

namespace firn {

// Issues ids like a snowflake tag. Only the definition under which they are issued matters here.
class SimSnowflake final : public Strategy {
 public:
  explicit SimSnowflake(SegmentShared& shared) : shared_(shared) {}

  std::string_view name() const override { return "snowflake"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override { return *id = shared_.snowflakes += 2, true; }
  Verdict Issue(IssueCall& call) override {
    while (call.missing() > 0) call.Add({shared_.snowflakes += 2, 1, 1});
    return Verdict::kIssued;
  }
  int64_t count_max() const override { return 1'000; }
  void Close() override {}
  void Stop() override {}

 private:
  SegmentShared& shared_;
};

// Replaces the real plugin: a permutation that soon shows collisions, because it swaps 1 and 2, 3
// and 4, ...
class SimObfuscate final : public Plugin {
 public:
  std::string_view name() const override { return "obfuscate"; }
  int order() const override { return 900; }
  std::optional<Refusal> After(const Request&, Runs& runs) override {
    Runs shown;
    runs.ForEach([&](int64_t id) { shown.Add({((id - 1) ^ 1) + 1, 1, 1}); });
    runs = std::move(shown);
    return std::nullopt;
  }
};

}  // namespace firn
