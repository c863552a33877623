#include <memory>

#include "tests/contract/coordinator_contract.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {
namespace {

class MemoryWorld : public CoordinatorWorld {
 public:
  std::unique_ptr<Coordinator> Connect() override {
    return std::make_unique<MemoryCoordinator>(tree_);
  }
  bool SetVersion(const std::string& path, int64_t version) override {
    tree_.SetVersion(path, version);
    return true;
  }

 protected:
  MemoryTree tree_{SystemClock()};
};

// Like servers that skip the unguarded version.
class SkippingWorld final : public MemoryWorld {
 public:
  SkippingWorld() { tree_.SkipUnguarded(); }
};

// The wrapper injects no fault by default.
class UnbrokenWorld final : public MemoryWorld {
 public:
  std::unique_ptr<Coordinator> Connect() override {
    return std::make_unique<FaultyCoordinator>(MemoryWorld::Connect(), SystemClock());
  }
};

// Delay alone violates no guarantee.
class SlowWorld final : public MemoryWorld {
 public:
  std::unique_ptr<Coordinator> Connect() override {
    return std::make_unique<FaultyCoordinator>(
        MemoryWorld::Connect(), SystemClock(),
        SeededFaults(entropy_, {.delayed = 700, .delay_max = Milliseconds(3)}));
  }

 private:
  SeededEntropy entropy_{7};
};

template <typename World>
WorldMaker Maker(const char* name) {
  return {name, [] { return std::make_unique<World>(); }};
}

INSTANTIATE_TEST_SUITE_P(Memory, CoordinatorContract,
                         testing::Values(Maker<MemoryWorld>("tree"),
                                         Maker<SkippingWorld>("skipping"),
                                         Maker<UnbrokenWorld>("unbroken"),
                                         Maker<SlowWorld>("slow")),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
