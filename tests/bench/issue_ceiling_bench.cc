// How closely the default layout's ceiling (4096 ids a tick) is reached, what waiting for the next
// tick costs, and how far the time in an id lags behind the id clock.

#include <algorithm>
#include <atomic>
#include <ctime>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "server/issue/patient_caller.h"
#include "tests/bench/issue_fixture.h"
#include "tests/bench/moment.h"

namespace firn {
namespace {

const Milliseconds kSpan{OnlyAMoment() ? 10 : 500};

double CpuSeconds() {
  timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// Spans begin with a whole tick, so that the two measurements below are comparable.
struct Span {
  Span() : begin(SystemClock().Wall() + Milliseconds(5)), end(begin + kSpan) {}
  WallMs begin, end;
};

// The ticks seen by a loop that only reads the clock.
int64_t TicksSeenByPolling(Span span) {
  int64_t ticks = 0;
  WallMs now = SystemClock().Wall();
  while (now < span.begin) now = SystemClock().Wall();
  for (WallMs before; now < span.end; now = SystemClock().Wall()) {
    ticks += now != before ? 1 : 0;
    before = now;
  }
  return ticks;
}

// Takes ids one by one, sleeping when a wait is required.
template <typename Fixture>
int64_t TakeDuring(Span span, Fixture& fixture) {
  const Layout& layout = fixture.ticks.layout();
  PatientCaller caller(fixture.issuer, SystemClock(), Milliseconds(1'000));
  IssueCall call;
  int64_t id = 0, count = 0;
  while (fixture.ticks.Current() < layout.TickAt(span.begin)) {
  }
  while (fixture.ticks.Current() < layout.TickAt(span.end)) {
    count += caller.IssueOne(call, *fixture.tag, {.tag = "order"}, &id) ? 1 : 0;
  }
  return count;
}

// Ids that the threads issued in a span, as a share of 4096 for each tick that bare polling sees.
void DefaultLayoutCeiling(benchmark::State& state) {
  IssueFixture fixture(Layout::Firn());
  std::atomic<int64_t> ids{0};
  int64_t ticks = 0;
  double cpu = 0;
  for (auto _ : state) {
    ticks += TicksSeenByPolling(Span());
    const double cpu_before = CpuSeconds();
    const Span span;
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < state.range(0); ++i) {
      threads.emplace_back([&] { ids += TakeDuring(span, fixture); });
    }
    threads.clear();
    cpu += CpuSeconds() - cpu_before;
  }
  const double spans = static_cast<double>(state.iterations());
  const double span_s = static_cast<double>(kSpan.count()) / 1'000;
  const double ceiling = 4096.0 * static_cast<double>(ticks);
  state.counters["share_of_ceiling"] = static_cast<double>(ids) / ceiling;
  state.counters["ids_per_second"] = static_cast<double>(ids) / spans / span_s;
  state.counters["cores_busy"] = cpu / spans / span_s;
}
BENCHMARK(DefaultLayoutCeiling)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Arg(8)
    ->Iterations(4)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Like TakeDuring, for calls of 1000 ids and four machine ids.
int64_t TakeThousandsDuring(Span span, LanesFixture& fixture) {
  const Layout& layout = fixture.ticks.layout();
  PatientCaller caller(fixture.issuer, SystemClock(), Milliseconds(1'000));
  IssueCall call;
  int64_t count = 0;
  while (fixture.ticks.Current() < layout.TickAt(span.begin)) {
  }
  while (fixture.ticks.Current() < layout.TickAt(span.end)) {
    call.Begin(*fixture.tag, {.tag = "order", .count = 1'000});
    count += caller.Issue(call) ? 1'000 : 0;
  }
  return count;
}

void FourMachineIdsCeiling(benchmark::State& state) {
  constexpr uint32_t kMachines = 4;
  LanesFixture fixture(Layout::Firn(), kMachines);
  std::atomic<int64_t> ids{0};
  int64_t ticks = 0;
  for (auto _ : state) {
    ticks += TicksSeenByPolling(Span());
    const Span span;
    std::vector<std::jthread> threads;
    for (int64_t i = 0; i < state.range(0); ++i) {
      threads.emplace_back([&] { ids += TakeThousandsDuring(span, fixture); });
    }
  }
  const double spans = static_cast<double>(state.iterations());
  const double ceiling = kMachines * 4096.0 * static_cast<double>(ticks);
  state.counters["share_of_ceiling"] = static_cast<double>(ids) / ceiling;
  state.counters["ids_per_second"] =
      static_cast<double>(ids) / spans / (static_cast<double>(kSpan.count()) / 1'000);
}
BENCHMARK(FourMachineIdsCeiling)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(4)
    ->Arg(8)
    ->Iterations(4)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// Milliseconds from the time in an id to the clock as read just before the call, with a wide
// layout, at a given number of ids per second (0: as fast as possible).
void Lag(benchmark::State& state) {
  IssueFixture fixture(WideLayout());
  constexpr size_t kSamples = 100'000;
  std::vector<int64_t> lags;
  for (auto _ : state) {
    const int64_t rate = state.range(0);
    const WallMs end = SystemClock().Wall() + 4 * kSpan;
    int64_t id = 0;
    while (lags.size() < kSamples && SystemClock().Wall() < end) {
      if (rate > 0) SleepFor(std::chrono::microseconds(1'000'000 / rate));
      for (int i = 0; rate == 0 && i < 10; ++i) {
        fixture.issuer.TryOne(*fixture.tag, Method::kThrift, &id);
      }
      const WallMs now = SystemClock().Wall();
      if (!fixture.issuer.TryOne(*fixture.tag, Method::kThrift, &id)) continue;
      const Layout& layout = fixture.ticks.layout();
      lags.push_back(layout.TickAt(now) - layout.Unpack(id)->tick);
    }
  }
  std::sort(lags.begin(), lags.end());
  const auto at = [&](double share) {
    return static_cast<double>(
        lags[static_cast<size_t>(share * static_cast<double>(lags.size() - 1))]);
  };
  state.counters["samples"] = static_cast<double>(lags.size());
  state.counters["p50_ms"] = at(0.5);
  state.counters["p99.9_ms"] = at(0.999);
  state.counters["max_ms"] = at(1);
}
BENCHMARK(Lag)
    ->ArgName("ids_per_second")
    ->Arg(0)
    ->Arg(10'000)
    ->Arg(1'000)
    ->Arg(100)
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace firn
