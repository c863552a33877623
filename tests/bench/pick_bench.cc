// The cost of picking a server and of recording its answer, with few and with many servers, for one
// thread and for several. Run it alone on the machine:
//   build/release/bin/pick_bench
// The figures are in tools/bench/FIGURES.md.

#include <memory>
#include <string>

#include <benchmark/benchmark.h>

#include "client/fleet/fleet.h"
#include "tests/support/virtual_clock.h"

namespace firn::client {
namespace {

constexpr Milliseconds kWarm{20'000};

// A fleet of `count` servers, all healthy and warmed up.
struct Servers {
  explicit Servers(int64_t count)
      : fleet({.servers_max = 0}, clock, 42), now(clock.BootMicros() + kWarm) {
    ServerList list;
    for (int64_t i = 0; i < count; ++i) {
      list.servers.push_back({.address = "10.0.0.1:" + std::to_string(1000 + i)});
    }
    fleet.Apply(list);
    clock.Advance(kWarm);
    for (int64_t i = 0; i < 40 * count; ++i) Call();
  }
  void Call() {
    const ServerPtr server = fleet.Pick("order", {}, now);
    fleet.Done(*server, "order", {}, Micros(100), now);
  }

  VirtualClock clock{WallMs(1'700'000'000'000)};
  Fleet fleet;
  const Micros now;
};

// Shared by the threads of one benchmark: created by the first, destroyed with the last.
std::unique_ptr<Servers> servers;

void PickAndAnswer(benchmark::State& state) {
  if (state.thread_index() == 0) servers = std::make_unique<Servers>(state.range(0));
  for (auto _ : state) servers->Call();
  state.SetItemsProcessed(state.iterations());
  if (state.thread_index() == 0) servers.reset();
}
BENCHMARK(PickAndAnswer)
    ->ArgName("servers")
    ->Arg(3)
    ->Arg(100)
    ->Arg(1000)
    ->Threads(1)
    ->Threads(2)
    ->UseRealTime();

}  // namespace
}  // namespace firn::client
