#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/claim/claim_keeper.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/registry/claim_host.h"

namespace firn {

inline constexpr WallMs kStart{1'750'000'000'000};
inline constexpr Milliseconds kAMoment{500};

// A cluster in memory, hosts that claim machine ids in it, and an operator.
class ClaimKeeperTest : public testing::Test {
 protected:
  void SetUp() override { MakeClusterWith(4); }

  void MakeClusterWith(uint32_t workers, int rack_bits = 0) {
    tree_.Wipe();
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    const Status made =
        MakeCluster(registry, {.rack_bits = rack_bits, .workers = workers}, entropy_);
    ASSERT_TRUE(made.ok()) << made;
  }

  ClaimOptions Options(const std::string& name = "a") {
    ClaimOptions options;
    options.identity = {.owner = name, .endpoint = name + ":1", .host = name, .build = "test"};
    options.restore_probation = {};  // tested separately
    return options;
  }

  std::unique_ptr<ClaimHost> Start(MemoryDisk& disk, ClaimOptions options) {
    return std::make_unique<ClaimHost>(tree_, clock_, disk, std::move(options), ++seed_);
  }
  std::unique_ptr<ClaimHost> Start() { return Start(disk_, Options()); }

  // Advances the time in small steps, or larger ones if `time` is long, while the hosts run.
  void Run(Milliseconds time, const std::vector<ClaimHost*>& hosts) {
    const Milliseconds step(time > Milliseconds(200'000) ? 50 : 5);
    for (Milliseconds passed{0}; passed < time; passed += step) {
      clock_.Advance(step);
      for (ClaimHost* host : hosts) host->Step();
    }
  }
  void Run(Milliseconds time, ClaimHost& host) { Run(time, {&host}); }

  bool Serves(ClaimHost& host) { return host.user().Take(1).kind == Step::Kind::kTaken; }

  SlotRecord RecordOf(uint32_t worker) {
    return *ParseSlotRecord(tree_.Peek(SlotPath({0, worker}))->data);
  }
  ClusterMeta Meta() { return *ParseMeta(tree_.Peek(kMetaPath)->data); }

  template <typename Verb>
  void AsOperator(Verb verb) {
    MemoryCoordinator coordinator(tree_);
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    verb(registry);
  }
  void Write1(const std::string& path, const std::string& data) {
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(registry.Multi({Write::Set(path, data, Write::kAnyVersion)}).status.ok());
    });
  }

  VirtualClock clock_{kStart};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{7};
  MemoryDisk disk_;
  uint64_t seed_ = 100;
};

}  // namespace firn
