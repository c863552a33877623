// The speed of the issuing core compared with its floors, all in one run. Run it alone:
//   build/release/bin/issue_bench
// tools/bench/FIGURES.md has the figures.

#include <atomic>
#include <ctime>
#include <mutex>

#include <benchmark/benchmark.h>

#include "common/sequence/sequencer.h"
#include "common/time/cycles.h"
#include "tests/bench/issue_fixture.h"

namespace firn {
namespace {

// --- floors -------------------------------------------------------------------------------------

alignas(64) std::atomic<uint64_t> counter{0};

void FloorFetchAdd(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(counter.fetch_add(1));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorFetchAdd)->Threads(1)->Threads(2)->UseRealTime();

void FloorClockRead(benchmark::State& state) {
  for (auto _ : state) {
    timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    benchmark::DoNotOptimize(t);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorClockRead)->Threads(1)->Threads(2)->UseRealTime();

void FloorMutex(benchmark::State& state) {
  static std::mutex mutex;
  for (auto _ : state) {
    const std::lock_guard lock(mutex);
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorMutex)->UseRealTime();

void FloorCycleCount(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(CycleCount());
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorCycleCount)->UseRealTime();

// --- a wide layout: the code is the limit -------------------------------------------------------

// Shared by the threads of one benchmark: created by the first, destroyed with the last.
template <SequencerKind kKind>
IssueFixture& Wide() {
  static IssueFixture fixture(WideLayout(), {.sequencer = {.kind = kKind}});
  return fixture;
}

template <SequencerKind kKind>
void WideSnowflake(benchmark::State& state) {
  IssueFixture& fixture = Wide<kKind>();
  int64_t failed = 0;
  for (auto _ : state) {
    int64_t id = 0;
    failed += fixture.snowflake->TryOne(Method::kThrift, &id) ? 0 : 1;
    benchmark::DoNotOptimize(id);
  }
  if (failed > 0) state.SkipWithError("an id was refused");
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WideSnowflake<SequencerKind::kAtomic>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(WideSnowflake<SequencerKind::kMutex>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(WideSnowflake<SequencerKind::kSpin>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

template <typename Fixture>
void TakeOneByOne(benchmark::State& state, Fixture& fixture) {
  int64_t failed = 0;
  for (auto _ : state) {
    int64_t id = 0;
    failed += fixture.issuer.TryOne(*fixture.tag, Method::kThrift, &id) ? 0 : 1;
    benchmark::DoNotOptimize(id);
  }
  if (failed > 0) state.SkipWithError("an id was refused");
  state.SetItemsProcessed(state.iterations());
}

void WideIssuer(benchmark::State& state) { TakeOneByOne(state, Wide<SequencerKind::kAtomic>()); }
BENCHMARK(WideIssuer)->Threads(1)->Threads(2)->UseRealTime();

// Two machine ids. Each thread has a sequence for itself, so the second one should cost as much as
// the first.
void WideLanes(benchmark::State& state) {
  static LanesFixture fixture(WideLayout(), 2);
  TakeOneByOne(state, fixture);
}
BENCHMARK(WideLanes)->Threads(1)->Threads(2)->UseRealTime();

void WideIssuerByName(benchmark::State& state) {
  IssueFixture& fixture = Wide<SequencerKind::kAtomic>();
  for (auto _ : state) {
    int64_t id = 0;
    std::string_view name = "order";
    benchmark::DoNotOptimize(name);
    fixture.issuer.TryOne(*fixture.issuer.Resolve(name), Method::kThrift, &id);
    benchmark::DoNotOptimize(id);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WideIssuerByName)->Threads(1)->Threads(2)->UseRealTime();

// Returns the ids as a list instead of runs.
void WideBatchOf1000(benchmark::State& state) {
  IssueFixture fixture(WidestLayout());
  IssueCall call;
  std::vector<int64_t> ids(1000);
  for (auto _ : state) {
    call.Begin(*fixture.tag, {.tag = "order", .count = 1000});
    if (fixture.issuer.Issue(call) != Verdict::kIssued) state.SkipWithError("not issued");
    int64_t* id = ids.data();
    call.runs().ForEach([&](int64_t next) { *id++ = next; });
    benchmark::DoNotOptimize(ids.data());
    benchmark::ClobberMemory();
  }
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(WideBatchOf1000)->UseRealTime();

// One call for one id on the slow path, with and without a plugin that does nothing.
class Idle final : public Plugin {
 public:
  std::string_view name() const override { return "idle"; }
  int order() const override { return 0; }
};

void WideCall(benchmark::State& state) {
  std::vector<std::shared_ptr<Plugin>> plugins;
  for (int i = 0; i < state.range(0); ++i) plugins.push_back(std::make_shared<Idle>());
  IssueFixture fixture(WideLayout(), {}, std::move(plugins));
  IssueCall call;
  for (auto _ : state) {
    call.Begin(*fixture.tag, {.tag = "order"});
    benchmark::DoNotOptimize(fixture.issuer.Issue(call));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(WideCall)->ArgName("plugins")->Arg(0)->Arg(1)->Arg(3)->UseRealTime();

}  // namespace
}  // namespace firn
