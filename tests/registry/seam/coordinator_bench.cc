// Measures the cost of one exchange with the registry in a simulation: request, delivery, answer.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

const std::string kSlot = "/machines/0/7";
const std::string kRecord(180, 'r');

// A tree with one slot, and the coordinator under test.
struct World {
  explicit World(bool wrapped) {
    coordinator = std::make_unique<MemoryCoordinator>(tree);
    if (wrapped) coordinator = std::make_unique<FaultyCoordinator>(std::move(coordinator), clock);
    coordinator->Dispatch({});
    for (const char* path : {"/", "/machines", "/machines/0", kSlot.c_str()}) {
      coordinator->Multi({Write::Create(path, "", Lifetime::kPersistent)},
                         [](const WriteOutcome&) {});
    }
    coordinator->Dispatch({});
  }

  VirtualClock clock{WallMs(1)};
  MemoryTree tree{clock};
  std::unique_ptr<Coordinator> coordinator;
};

void Renew(benchmark::State& state) {
  World world(state.range(0) != 0);
  int64_t version = 0;
  for (auto _ : state) {
    world.coordinator->Multi(
        {Write::Check("/", 0), Write::Set(kSlot, kRecord, version)},
        [&](const WriteOutcome& outcome) { version = outcome.stats[1].version; });
    world.coordinator->Dispatch({});
  }
  if (version == 0) state.SkipWithError("nothing was written");
}
BENCHMARK(Renew)->ArgName("wrapped")->Arg(0)->Arg(1);

void ReadBack(benchmark::State& state) {
  World world(state.range(0) != 0);
  int64_t answers = 0;
  for (auto _ : state) {
    world.coordinator->Read(kSlot, [&](const Result<Node>& node) { answers += node.ok(); });
    world.coordinator->Dispatch({});
  }
  if (answers == 0) state.SkipWithError("nothing was read");
}
BENCHMARK(ReadBack)->ArgName("wrapped")->Arg(0)->Arg(1);

}  // namespace
}  // namespace firn
