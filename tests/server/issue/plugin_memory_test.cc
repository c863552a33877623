// A plugin whose long list of ids finds no memory.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/support/allocations.h"

namespace firn {
namespace {

// Makes a run for each id, which needs much memory.
std::optional<Refusal> Scatter(const Request&, Runs& runs) {
  Runs scattered;
  runs.ForEach([&](int64_t id) { scattered.Add({2 * id, 1, 1}); });
  runs = std::move(scattered);
  // From now on: the issuer assembles what the plugin returns.
  FailAllocationsFrom(1'000);
  return std::nullopt;
}

TEST(PluginMemoryTest, ACallWithoutMemoryForItsIdsIsRefusedAndGivesThemBack) {
  constexpr int64_t kCount = 2 * PluginChain::kIdsPerPart;
  std::vector<std::string> log;
  const auto plugin = std::make_shared<ScriptedPlugin>("p", 1, &log);
  plugin->does = Plugin::Effect::kEach;
  plugin->after = Scatter;
  const auto strategy = std::make_shared<CountingStrategy>();
  RecordingRejections rejections;
  Issuer issuer(rejections);
  ASSERT_EQ(issuer.Set({"order", strategy, {plugin}}), Status());
  IssueCall call(*issuer.Resolve("order"), {.tag = "order", .count = kCount});
  const Verdict verdict = issuer.Issue(call);
  FailAllocationsFrom(SIZE_MAX);
  EXPECT_EQ(verdict, Verdict::kRefused);
  EXPECT_EQ(call.refusal().reason, Reason::kInternal);
  EXPECT_EQ(strategy->lost, kCount);
  EXPECT_EQ(log.back(), "p refused INTERNAL");
}

}  // namespace
}  // namespace firn
