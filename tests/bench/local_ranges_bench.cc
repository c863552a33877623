// The speed of ids in memory compared with its floors, all in one run. Run it alone on the machine:
//   build/release/bin/local_ranges_bench

#include <atomic>
#include <memory>

#include <benchmark/benchmark.h>

#include "client/local_ranges.h"

namespace firn {
namespace {

// Answers at once, so that only the cost of the supply is measured.
class InstantFetcher final : public RangeFetcher {
 public:
  void Fetch(const std::string&, int64_t count, Done done) override {
    done(std::vector<IdRun>{{next_.fetch_add(count), count, 1}});
  }

 private:
  std::atomic<int64_t> next_ = 1;
};

alignas(64) std::atomic<int64_t> counter{0};

void FloorFetchAdd(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(counter.fetch_add(1));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(FloorFetchAdd)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

// Shared by the threads of one benchmark: created by the first, destroyed with the last.
InstantFetcher fetcher;
std::unique_ptr<LocalSupply> supply;

void Take(benchmark::State& state, const LocalTag& tag) {
  if (state.thread_index() == 0) supply = LocalRanges({tag})(fetcher);
  int64_t missed = 0;
  for (auto _ : state) {
    const std::optional<int64_t> id = supply->TryTake("order");
    if (!id) ++missed;
    benchmark::DoNotOptimize(id);
  }
  state.SetItemsProcessed(state.iterations() - missed);
  state.counters["missed"] = static_cast<double>(missed);
  if (state.thread_index() == 0) supply.reset();
}

void TakeSegment(benchmark::State& state) { Take(state, LocalTag::Segment("order")); }
BENCHMARK(TakeSegment)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

void TakeSnowflake(benchmark::State& state) { Take(state, LocalTag::Snowflake("order")); }
BENCHMARK(TakeSnowflake)->Threads(1)->Threads(2)->Threads(8)->UseRealTime();

}  // namespace
}  // namespace firn
