// Single segment numbers compared with a bare fetch_add, in short alternating slices, so that other
// load on the machine affects both alike. `share` is the median, over all rounds, of the numbers
// issued in a round's slice over the fetch_adds done in the other; rates are medians, in millions
// per second by wall clock, of all threads together.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/bench/moment.h"
#include "tests/bench/segment_fixture.h"

namespace firn {
namespace {

const size_t kRounds = OnlyAMoment() ? 1 : 41;
constexpr std::chrono::milliseconds kSlice{20};
constexpr int kBetweenLooks = 256;  // turns between two checks whether the slice is over

alignas(64) std::atomic<uint64_t> shared_counter{0};

struct FetchAdd {
  void operator()() const { benchmark::DoNotOptimize(shared_counter.fetch_add(1)); }
};

// A number of a tag, by its handle.
struct OneNumber {
  SegmentFixture* fixture;
  const Tag* tag;

  void operator()() const {
    int64_t id;
    if (!fixture->issuer.TryOne(*tag, Method::kEmbedded, &id)) id = fixture->Long();
    benchmark::DoNotOptimize(id);
  }
};

// Runs `turn` on `threads` threads for a slice. Returns the turns per second of all threads
// together.
template <typename Turn>
double Rate(int threads, const Turn& shared) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false}, stop{false};
  std::atomic<int64_t> turns{0};
  std::vector<std::jthread> crew;
  for (int i = 0; i < threads; ++i) {
    crew.emplace_back([&] {
      const Turn turn = shared;  // in registers: finding it must not be part of a turn
      int64_t mine = 0;
      ++ready;
      while (!go) std::this_thread::yield();
      for (; !stop.load(std::memory_order_relaxed); mine += kBetweenLooks) {
        for (int k = 0; k < kBetweenLooks; ++k) turn();
      }
      turns += mine;
    });
  }
  while (ready < threads) std::this_thread::yield();
  const auto from = std::chrono::steady_clock::now();
  go = true;
  std::this_thread::sleep_for(kSlice);
  stop = true;
  crew.clear();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - from;
  return static_cast<double>(turns.load()) / took.count();
}

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <SegmentFixture& (*kFixture)()>
void SegmentShare(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  const OneNumber one{&kFixture(), kFixture().tag};
  std::vector<double> floors, rates, shares;
  for (auto _ : state) {
    for (size_t i = 0; i < kRounds; ++i) {
      floors.push_back(Rate(threads, FetchAdd{}));
      rates.push_back(Rate(threads, one));
      shares.push_back(rates.back() / floors.back());
    }
  }
  state.counters["floor"] = Median(floors) / 1e6;
  state.counters["rate"] = Median(rates) / 1e6;
  state.counters["share"] = Median(shares);
}
BENCHMARK(SegmentShare<Huge>)->Arg(1)->Arg(2)->Arg(8)->Iterations(1)->UseRealTime();
BENCHMARK(SegmentShare<Thousand>)->Arg(1)->Arg(2)->Arg(8)->Iterations(1)->UseRealTime();

}  // namespace
}  // namespace firn
