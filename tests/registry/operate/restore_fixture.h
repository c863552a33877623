#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/operate/restore.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

inline constexpr WallMs kRestoreTime{1'750'000'000'000};
inline constexpr Milliseconds kWindow{600'000};
inline constexpr Milliseconds kSkew{10'000};

// A cluster in memory of one rack with four workers, and restores of it that can be interrupted
// after a number of writes.
class RestoreTest : public testing::Test {
 protected:
  RestoreTest() { Make({}); }

  void AsOperator(const std::function<void(BlockingCoordinator&)>& verb) {
    FaultyCoordinator coordinator(std::make_unique<MemoryCoordinator>(tree_), clock_,
                                  [this](Verb verb_asked) { return Draw(verb_asked); });
    BlockingCoordinator registry(coordinator, clock_);
    ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
    verb(registry);
  }
  Fate Draw(Verb verb) {
    if (verb != Verb::kMulti || !multis_left_.has_value() || (*multis_left_)-- > 0) return {};
    return {Fate::Kind::kRefused, {}, {}};
  }
  void Make(WallMs floor) {
    tree_.Wipe();
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(
          MakeCluster(registry, {.rack_bits = 0, .workers = 4, .floor = floor}, entropy_).ok());
    });
  }
  void Write1(Write write) {
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(registry.Multi({std::move(write)}).status.ok());
    });
  }
  void PutBound(WallMs bound) {
    Write1(Write::Set(SlotPath({0, 1}), FormatSlotRecord({.nonce = Nonce(1, 1), .bound = bound}),
                      Write::kAnyVersion));
  }
  Result<RestoreReport> Restore(const std::vector<WallMs>& reported = {},
                                Milliseconds skew = kSkew) {
    RestoreFacts facts = Facts();
    facts.skew_max = skew;
    for (const WallMs bound : reported) facts.bounds.push_back({bound});
    return RestoreBy(facts);
  }
  static RestoreFacts Facts() {
    RestoreFacts facts{.now = kRestoreTime, .window = kWindow, .skew_max = kSkew};
    facts.rack_bits = 0;
    facts.workers = 4;
    return facts;
  }
  Result<RestoreReport> RestoreBy(const RestoreFacts& facts) {
    Result<RestoreReport> report = Invalid("not run");
    AsOperator(
        [&](BlockingCoordinator& registry) { report = RestoreCluster(registry, facts, entropy_); });
    return report;
  }
  SlotRecord RecordOf(uint32_t worker) {
    return *ParseSlotRecord(tree_.Peek(SlotPath({0, worker}))->data);
  }
  MetaAsRead Meta() {
    const Node node = *tree_.Peek(kMetaPath);
    return {*ParseMeta(node.data), node.stat.version};
  }

  VirtualClock clock_{kRestoreTime};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{5};
  std::optional<int> multis_left_{};
};

}  // namespace firn
