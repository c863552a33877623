// The speed of segment numbers in a process compared with a bare fetch_add, all in one run:
//   build/release/bin/segment_bench
// tools/bench/FIGURES.md has the figures.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/segment_fixture.h"

namespace firn {
namespace {

alignas(64) std::atomic<uint64_t> counter{0};

void FloorFetchAdd(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(counter.fetch_add(1));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorFetchAdd)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

template <SegmentFixture& (*kFixture)()>
void SegmentOne(benchmark::State& state) {
  SegmentFixture& fixture = kFixture();
  const Tag& tag = *fixture.tag;
  for (auto _ : state) {
    int64_t id;
    if (!fixture.issuer.TryOne(tag, Method::kEmbedded, &id)) id = fixture.Long();
    benchmark::DoNotOptimize(id);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(SegmentOne<Huge>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(SegmentOne<Owned>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();
BENCHMARK(SegmentOne<Thousand>)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

void SegmentStrategyOnly(benchmark::State& state) {
  SegmentFixture& fixture = Huge();
  for (auto _ : state) {
    int64_t id = 0;
    if (!fixture.segment->TryOne(Method::kEmbedded, &id)) id = fixture.Long();
    benchmark::DoNotOptimize(id);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(SegmentStrategyOnly)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

void SegmentRuns(benchmark::State& state) {
  SegmentFixture& fixture = Huge();
  IssueCall call;
  for (auto _ : state) {
    call.Begin(*fixture.tag, {.tag = "order", .count = 1'000, .form = Form::kRuns});
    while (fixture.issuer.Issue(call) == Verdict::kWait) {
    }
    benchmark::DoNotOptimize(call.runs()[0].first);
  }
  state.SetItemsProcessed(state.iterations() * 1'000);
}
BENCHMARK(SegmentRuns)->Threads(1)->Threads(2)->UseRealTime();

// A caller's wait across range switches, compared with the same without one, in nanoseconds.
template <SegmentFixture& (*kFixture)()>
void SegmentLatency(benchmark::State& state) {
  SegmentFixture& fixture = kFixture();
  std::vector<int64_t> took;
  took.reserve(1 << 20);
  for (auto _ : state) {
    const auto before = std::chrono::steady_clock::now();
    int64_t id = 0;
    if (!fixture.issuer.TryOne(*fixture.tag, Method::kEmbedded, &id)) id = fixture.Long();
    const auto after = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(id);
    if (took.size() < took.capacity()) took.push_back((after - before).count());
  }
  std::sort(took.begin(), took.end());
  const auto at = [&](double part) {
    return static_cast<double>(
        took[static_cast<size_t>(part * static_cast<double>(took.size() - 1))]);
  };
  state.counters["p50_ns"] = at(0.5);
  state.counters["p99_ns"] = at(0.99);
  state.counters["p99.9_ns"] = at(0.999);
}
BENCHMARK(SegmentLatency<Huge>);
BENCHMARK(SegmentLatency<TenThousand>);

}  // namespace
}  // namespace firn
