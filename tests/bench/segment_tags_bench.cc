// The cost of the control loop's rounds with thousands of idle segment tags. Run it alone on the
// machine:
//   build/release/bin/segment_tags_bench
// The figures are in tools/bench/FIGURES.md.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "server/node/segment_tags.h"
#include "tests/support/endless_source.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr Milliseconds kRound{10};

// `count` tags, each with a range in memory and no calls.
struct IdleTags {
  explicit IdleTags(int64_t count)
      : tags(
            registry, [](const std::function<void()>& task) { task(); }, clock, entropy) {
    if (!tags.AddSource("endless", std::make_unique<EndlessSource>()).ok()) std::abort();
    for (int64_t i = 0; i < count; ++i) {
      TagDefinition tag{.name = "tag" + std::to_string(i), .strategy = "segment"};
      tag.store = "endless";
      strategies.push_back(*tags.Make(tag));
      int64_t id = 0;
      IssueCall call;
      call.Begin({.tag = tag.name, .count = 1});
      while (!strategies.back()->TryOne(Method::kEmbedded, &id) &&
             strategies.back()->Issue(call) == Verdict::kWait) {
      }
    }
    Round();
  }
  void Round() {
    clock.Advance(kRound);
    tags.Tick(clock.Boot());
  }

  VirtualClock clock{WallMs(1'700'000'000'000)};
  SeededEntropy entropy{1};
  MemoryTree tree{clock};
  MemoryCoordinator registry{tree};
  SegmentTags tags;
  std::vector<std::shared_ptr<Strategy>> strategies{};
};

// The rounds of one second, one of which visits all tags.
void SecondOfRounds(benchmark::State& state) {
  IdleTags idle(state.range(0));
  for (auto _ : state) {
    for (int i = 0; i < 100; ++i) idle.Round();
  }
}
BENCHMARK(SecondOfRounds)->ArgName("tags")->Arg(100)->Arg(5'000)->Unit(benchmark::kMicrosecond);

// Rounds that visit all tags, as every round does while all tags have work.
void RoundThatVisitsAll(benchmark::State& state) {
  IdleTags idle(state.range(0));
  for (auto _ : state) {
    idle.clock.Advance(SegmentTags::kVisitAllEvery);
    idle.tags.Tick(idle.clock.Boot());
  }
}
BENCHMARK(RoundThatVisitsAll)->ArgName("tags")->Arg(100)->Arg(5'000)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace firn
