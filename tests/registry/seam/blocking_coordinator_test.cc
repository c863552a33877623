#include "registry/seam/blocking_coordinator.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

TEST(BlockingCoordinatorTest, EachVerbReturnsItsOwnAnswer) {
  VirtualClock clock{WallMs(1'700'000'000'000)};
  MemoryTree tree(clock);
  MemoryCoordinator memory(tree);
  BlockingCoordinator registry(memory, clock);

  ASSERT_TRUE(registry.Connect(Milliseconds(1000)).ok());
  ASSERT_TRUE(registry.PrepareRoot().ok());
  ASSERT_TRUE(registry
                  .Multi({Write::Create("/", "root", Lifetime::kPersistent),
                          Write::Create("/b", "", Lifetime::kPersistent),
                          Write::Create("/a", "", Lifetime::kPersistent)})
                  .status.ok());
  EXPECT_TRUE(registry.Sync("/").ok());
  EXPECT_EQ(registry.Read("/")->data, "root");
  EXPECT_EQ(*registry.List("/"), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(registry.Read("/c").code(), Code::kNotFound);
  EXPECT_EQ(registry.Multi({Write::Erase("/c", 0)}).failed, 0);
}

TEST(BlockingCoordinatorTest, ReadAllReturnsNodesInTheOrderOfTheirPaths) {
  VirtualClock clock{WallMs(1'700'000'000'000)};
  MemoryTree tree(clock);
  MemoryCoordinator memory(tree);
  BlockingCoordinator registry(memory, clock);
  ASSERT_TRUE(registry.Connect(Milliseconds(1000)).ok());
  ASSERT_TRUE(registry.Multi({Write::Create("/", "", Lifetime::kPersistent)}).status.ok());
  std::vector<std::string> paths;
  for (size_t i = 0; i < 1'000; ++i) {
    paths.push_back("/" + std::to_string(i));
    if (i % 3 == 0) continue;
    ASSERT_TRUE(
        registry.Multi({Write::Create(paths[i], paths[i], Lifetime::kPersistent)}).status.ok());
  }

  const auto nodes = registry.ReadAll(paths);
  ASSERT_EQ(nodes.size(), paths.size());
  for (size_t i = 0; i < 1'000; ++i) {
    if (i % 3 == 0) {
      EXPECT_EQ(nodes[i].code(), Code::kNotFound) << i;
    } else {
      EXPECT_EQ(nodes[i]->data, paths[i]);
    }
  }
  EXPECT_TRUE(registry.ReadAll({}).empty());
}

// Exposes the session handler, so that an event can be delivered late.
class LateNews final : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  void OnSession(std::function<void(SessionEvent)> handler) override { told = std::move(handler); }
  std::function<void(SessionEvent)> told;
};

TEST(BlockingCoordinatorTest, ReceivesNoSessionEventAfterItsEnd) {
  VirtualClock clock{WallMs(1'700'000'000'000)};
  MemoryTree tree(clock);
  MemoryCoordinator memory(tree);
  LateNews late(memory);
  auto registry = std::make_unique<BlockingCoordinator>(late, clock);
  ASSERT_TRUE(late.told);
  registry.reset();
  if (late.told) late.told({SessionEvent::Kind::kDenied});
}

}  // namespace
}  // namespace firn
