#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/slot.h"
#include "registry/owners/owners.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// One server of a test.
struct OwnersServer {
  static constexpr Milliseconds kWindow{2'000};

  OwnersServer(MemoryTree& tree, const VirtualClock& clock, const std::string& name, uint64_t seed)
      : address(name),
        link(std::make_unique<MemoryCoordinator>(tree), clock),
        entropy(seed),
        owners(link, entropy, {.address = name, .window = kWindow}, [this, &tree](size_t i) {
          ++ended;
          const auto node = tree.Peek(PartitionPath(i));
          named_when_ended = node.has_value() && node->data.find(address) != std::string::npos;
        }) {
    owners.Want();
    owners.Permit(true);
  }

  int Owned() const {
    int owned = 0;
    for (size_t i = 0; i < kPartitions; ++i)
      owned += owners.At(i).kind == Holding::Kind::kHere ? 1 : 0;
    return owned;
  }
  // Returns the number of partitions whose numbers it may take.
  int MayTake(BootMs now) const {
    int held = 0;
    for (size_t i = 0; i < kPartitions; ++i) {
      held += owners.term(i).Holds(owners.term(i).Load(), now) ? 1 : 0;
    }
    return held;
  }

  const std::string address;
  FaultyCoordinator link;
  SeededEntropy entropy;
  int ended = 0;
  bool named_when_ended = false;
  Owners owners;
};

// Two servers and an operator, in virtual time.
class OwnersFixture : public testing::Test {
 protected:
  static constexpr Milliseconds kStep{10}, kWindow = OwnersServer::kWindow;
  // After this time in a session, a server takes free partitions.
  static constexpr Milliseconds kStart = kWindow * 5 / 4 + Milliseconds(300);
  static constexpr Lifetime kStays = Lifetime::kPersistent;

  OwnersFixture() {
    operator_.OnSession([](SessionEvent) {});
    Apply({Write::Create("/", FormatMeta(meta_), kStays),
           Write::Create(EraPath(meta_.era), "", kStays)});
  }

  void Apply(std::vector<Write> writes) {
    operator_.Dispatch(Milliseconds(0));
    operator_.Multi(std::move(writes),
                    [](const WriteOutcome& done) { EXPECT_TRUE(done.status.ok()) << done.status; });
    operator_.Dispatch(Milliseconds(0));
  }
  void SetRoot() { Apply({Write::Set("/", FormatMeta(meta_), Write::kAnyVersion)}); }

  // Creates all partitions without an owner.
  void MakePartitions() {
    std::vector<Write> writes;
    for (const char* path : {kOwnersPath, kBeatsPath, kPartitionsPath}) {
      writes.push_back(Write::Create(path, "", kStays));
    }
    for (size_t i = 0; i < kPartitions; ++i) {
      writes.push_back(Write::Create(PartitionPath(i), FormatPartitionOwner({}), kStays));
    }
    Apply(std::move(writes));
  }

  void Round(OwnersServer& server) {
    while (server.link.Dispatch(Milliseconds(0)) > 0) server.owners.Tick(clock_.Boot());
    server.owners.Tick(clock_.Boot());
  }
  void Pass(Milliseconds time, const std::vector<OwnersServer*>& servers) {
    for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) {
      clock_.Advance(kStep);
      for (OwnersServer* server : servers) Round(*server);
    }
  }

  PartitionOwner OwnerOf(size_t partition) {
    return ParsePartitionOwner(tree_.Peek(PartitionPath(partition))->data).value();
  }
  // Returns the number of beats in the registry.
  size_t Beats() {
    size_t count = 0;
    operator_.List(kBeatsPath, [&](const Result<std::vector<std::string>>& names) {
      count = names.value().size();
    });
    operator_.Dispatch(Milliseconds(0));
    return count;
  }
  Node BeatOf(const PartitionOwner& owner) { return *tree_.Peek(BeatPath(owner.tenure)); }

  ClusterMeta meta_{.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
                    .era = Nonce(3, 4),
                    .layout = "firn",
                    .floor = {},
                    .reason = {}};
  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator operator_{tree_};
  OwnersServer a_{tree_, clock_, "10.0.0.1:7609", 1};
  OwnersServer b_{tree_, clock_, "10.0.0.2:7609", 2};
};

}  // namespace firn
